"""Constants that several packages share, in a module that imports nothing."""

DEFAULT_BEAM_SIZE = 5
DEFAULT_LENGTH = "norm"  # length handling
MAX_TOKENS = 250  # longer lines are split
SENTENCEPIECE_FILE = "sentencepiece.model"
LETTERS_FILE = "letters.tsv"  # a profile of a language
SPECIALS = ("<s>", "</s>", "<unk>")  # the first entries of each vocabulary
