"""One record for each position of a text: the words that start there, and the word before them.

A record is a few unsigned 64-bit numbers, into which the ids of the words are packed from the highest bits on. So
records in the order of these numbers are in the order of their words. After the end of a sentence the ids are 0, which
is `<s>` and occurs nowhere else in a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import inline_kernel, kernel
from dragoman.data.vocabulary import END, START

Records = NDArray[np.uint64]  # (positions, format.numbers)
MAX_INSERTED = 16  # records that are sorted by insertion


@dataclass(frozen=True)
class RecordFormat:
    """How records are packed: fields 0 to `order` - 1 are the words, field `order` is the word before them."""

    order: int
    bits: int  # of a word

    @classmethod
    def of(cls, order: int, vocab_size: int) -> RecordFormat:
        """Return the format of records for a vocabulary."""
        return cls(order, max(2, (vocab_size - 1).bit_length()))

    @property
    def words_per_number(self) -> int:
        return 64 // self.bits

    @property
    def numbers(self) -> int:
        """How many 64-bit numbers a record has."""
        return -(-(self.order + 1) // self.words_per_number)

    @property
    def row_bytes(self) -> int:
        return 8 * self.numbers

    def fields(self, records: Records, field: int) -> NDArray[np.int64]:
        """Return one field of all records."""
        number, place = divmod(field, self.words_per_number)
        shift = np.uint64(self.bits * (self.words_per_number - 1 - place))
        return ((records[:, number] >> shift) & np.uint64((1 << self.bits) - 1)).astype(np.int64)

    def words(self, record: Records) -> list[int]:
        """Return the words of one record, up to the end of the sentence."""
        words = [int(self.fields(record[None], field)[0]) for field in range(self.order)]
        length = next((field for field in range(1, self.order) if words[field] == START), self.order)
        return words[:length]

    def shared(self, first: Records, second: Records) -> int:
        """Return how many words two records have in common at the beginning, at most those of the shorter one.

        >>> format = RecordFormat(order=3, bits=4)
        >>> format.shared(np.array([0x3451 << 48], np.uint64), np.array([0x3462 << 48], np.uint64))
        2
        """
        pairs = zip(self.words(first), self.words(second), strict=False)
        return next(
            (number for number, (a, b) in enumerate(pairs) if a != b),
            min(len(self.words(first)), len(self.words(second))),
        )


def distribute_text(
    text: NDArray[np.int32], bucket_of: NDArray[np.int32], buckets: int, format: RecordFormat
) -> tuple[Records, NDArray[np.int64]]:
    """Return the records of a text of whole sentences by the bucket of their first words.

    Args:
        text: the ids, with `<s>` and `</s>`.
        bucket_of: the bucket of each word.  # (|V|,)
        buckets: their number.
        format: how the words are packed.

    Returns: the records, sorted by bucket, and where those of each bucket end.
    """
    ends = np.cumsum(np.bincount(bucket_of[text], minlength=buckets))
    records = np.zeros((len(text), format.numbers), np.uint64)
    cursor = np.concatenate([[0], ends[:-1]])
    _pack(text, bucket_of, cursor, format.order, format.bits, format.words_per_number, records)
    return records, ends


def distribute_records(
    records: Records, bucket: NDArray[np.integer], buckets: int
) -> tuple[Records, NDArray[np.int64]]:
    """Return records sorted by their buckets, and where those of each bucket end."""
    return records[np.argsort(bucket, kind="stable")], np.cumsum(np.bincount(bucket, minlength=buckets))


def sort_records(records: Records) -> Records:
    """Return records in order.

    As many of their first bits as fit into 64 together with the number of the record are sorted at once, by NumPy's
    vectorised sort. Then the records that are equal in these bits are sorted by all of them.
    """
    if len(records) < 2:
        return records
    first = records[:, 0]
    minimum, index_bits = first.min(), len(records).bit_length()
    dropped_bits = max(0, int(first.max() - minimum).bit_length() - (64 - index_bits))
    keys = (first - minimum) >> np.uint64(dropped_bits)
    keys <<= np.uint64(index_bits)
    keys |= np.arange(len(records), dtype=np.uint64)
    keys.sort()
    result = np.empty_like(records)
    _gather(records, keys, np.uint64((1 << index_bits) - 1), result)
    if dropped_bits or records.shape[1] > 1:
        keys >>= np.uint64(index_bits)
        _sort_ties(result, keys)
    return result


@kernel
def _pack(text: Any, bucket_of: Any, cursor: Any, order: int, bits: int, per_number: int, records: Any) -> None:
    for i in range(text.size):
        row = cursor[bucket_of[text[i]]]
        cursor[bucket_of[text[i]]] += 1
        number, place = 0, per_number
        is_inside = True
        for field in range(order + 1):
            if place == 0:
                number, place = number + 1, per_number
            place -= 1
            w = 0
            if field == order:
                w = text[i - 1] if text[i] != START else 0
            elif is_inside:
                w = text[i + field]
                is_inside = w != END
            records[row, number] |= np.uint64(w) << np.uint64(bits * place)


@kernel
def _gather(records: Any, keys: Any, mask: Any, result: Any) -> None:
    for i in range(keys.size):
        row = keys[i] & mask
        for number in range(records.shape[1]):
            result[i, number] = records[row, number]


@kernel
def _sort_ties(records: Any, keys: Any) -> None:
    """Sort the records of each range of equal keys."""
    stack, pivot = np.empty((128, 2), np.int64), np.empty(records.shape[1], np.uint64)
    first = 0
    while first < keys.size:
        last = first + 1
        while last < keys.size and keys[last] == keys[first]:
            last += 1
        if last - first > 1:
            _quicksort(records, first, last, stack, pivot)
        first = last


@inline_kernel
def _is_less(records: Any, a: int, other: Any) -> bool:
    for number in range(records.shape[1]):
        if records[a, number] != other[number]:
            return bool(records[a, number] < other[number])
    return False


@inline_kernel
def _is_greater(records: Any, a: int, other: Any) -> bool:
    for number in range(records.shape[1]):
        if records[a, number] != other[number]:
            return bool(records[a, number] > other[number])
    return False


@inline_kernel
def _swap(records: Any, a: int, b: int) -> None:
    for number in range(records.shape[1]):
        records[a, number], records[b, number] = records[b, number], records[a, number]


@kernel
def _quicksort(records: Any, first: int, last: int, stack: Any, pivot: Any) -> None:
    """Sort a range. Equal records are divided evenly between both sides; the larger side waits on the stack."""
    depth = 0
    while True:
        while last - first > MAX_INSERTED:
            for number in range(records.shape[1]):
                pivot[number] = records[(first + last) >> 1, number]
            low, high = first, last - 1
            while low <= high:
                while _is_less(records, low, pivot):
                    low += 1
                while _is_greater(records, high, pivot):
                    high -= 1
                if low <= high:
                    _swap(records, low, high)
                    low, high = low + 1, high - 1
            if high + 1 - first > last - low:
                stack[depth, 0], stack[depth, 1] = first, high + 1
                first = low
            else:
                stack[depth, 0], stack[depth, 1] = low, last
                last = high + 1
            depth += 1
        _insertion_sort(records, first, last, pivot)
        if depth == 0:
            return
        depth -= 1
        first, last = stack[depth, 0], stack[depth, 1]


@inline_kernel
def _insertion_sort(records: Any, first: int, last: int, pivot: Any) -> None:
    for i in range(first + 1, last):
        for number in range(records.shape[1]):
            pivot[number] = records[i, number]
        j = i
        while j > first and _is_greater(records, j - 1, pivot):
            for number in range(records.shape[1]):
                records[j, number] = records[j - 1, number]
            j -= 1
        for number in range(records.shape[1]):
            records[j, number] = pivot[number]
