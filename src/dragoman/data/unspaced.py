"""Scripts that are written without spaces between words."""

import re

# Thai, Lao, Tibetan, Burmese, Khmer, Japanese kana, Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
