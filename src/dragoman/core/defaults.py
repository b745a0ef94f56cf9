"""Default settings of search, in a module that imports nothing."""

DEFAULT_BEAM_SIZE = 5
DEFAULT_LENGTH = "norm"  # length handling
MAX_TOKENS = 250  # longer lines are split
