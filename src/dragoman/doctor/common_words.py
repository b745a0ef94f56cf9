"""The most common words of some languages, to compare the language of a text with the name of its file."""

from __future__ import annotations

import re

from dragoman.data.languages import LANGUAGE_NAMES

_COMMON_WORDS = """
bg и на да се за не от че по като във това
ca de la el que els les i per en amb una del no és
cs a se na je že to v si s do ale jak by jsem
da og i at det er en til af den på jeg ikke med har
de der die und in ist das nicht ich es ein zu den mit sich auf eine er sie
el και το να του η της με που την από για δεν
en the of and to a in is that it was you for on he with as i are this
es de la que el en y a los se del las un por con una no es
et ja on ei et see kui ta oma ma mis aga
fi ja on ei se että hän oli mutta en kun hän tämä
fr de la le et les des en un une du que est pour dans il elle je pas
hr i je u se na da za su ne od koji
hu a az és hogy nem egy is ez volt de meg
id yang dan di itu dengan untuk tidak ini dari dalam akan saya
is og að er í á sem ekki það við til en
it di che la il e un a per in una non sono è del ho
lt ir yra kad su į tai bet ne iš kaip jis
lv un ir ka ar uz no par tas bet kas viņš
nl de het een van en in is dat niet te ik zijn op voor met
no og i det er en til på av ikke jeg med som har
pl i w nie na się z do to że jest a co
pt de a o que e do da em um para não uma com é os
ro de și în la a nu că o cu un pe este să
ru и в не на я что он с как это а по но
sk a sa na je že to v si s do ale ako by som
sl je in v na se da za so ne z ki
sv och i att det är en på som av jag inte med har den
tr bir ve bu da de için çok ne o ben mi
uk і в не на я що з у це як до та
vi là của và có không được một cho người trong
"""
COMMON_WORDS = {line[:2]: frozenset(line[3:].split()) for line in _COMMON_WORDS.strip().split("\n")}


def language_of_name(path: str, field: str) -> str:
    """Return the code of the language that the name of a column or of a file ends in, or an empty string.

    Only languages whose common words are known count.

    >>> language_of_name("data/train.de", ""), language_of_name("train-en.txt.gz", ""), language_of_name("t.tsv", "de")
    ('de', 'en', 'de')
    """
    for name in (field, re.sub(r"\.(gz|txt|tok|tsv|jsonl)$", "", re.sub(r"\.gz$", "", path))):
        code = re.split(r"[^a-z]", name.lower())[-1]
        if code in COMMON_WORDS and code in LANGUAGE_NAMES:
            return code
    return ""
