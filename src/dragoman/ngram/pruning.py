from dragoman.ngram.table import Table


def entropy_pruned(table: Table, threshold: float) -> Table:
    raise NotImplementedError
