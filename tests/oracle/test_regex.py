"""Regular expressions of tfwire.compat find what RE2 finds.

TFWIRE_ORACLE_CASES says how many random ones, TFWIRE_ORACLE_SEED with which seed they begin.
"""

import os
import random

import pytest
import tensorflow

import tfwire.compat

CASES = int(os.environ.get("TFWIRE_ORACLE_CASES", "150")) * 3
SEED = int(os.environ.get("TFWIRE_ORACLE_SEED", "0"))
FLAGS = ["", "", "(?i)", "(?s)", "(?m)", "(?sm)"]
PARTS = [
    *["a", "b", "é", "\0", "A", "É", "1", "_", " ", "-", r"\.", r"\n", r"\t", r"\x{e9}", r"\xe9"],
    *[".", r"\w", r"\W", r"\d", r"\s", r"\S", r"\b", r"\A", r"\z", "^", "$", r"\Qa.\E"],
    *["*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{,2}", "(", "(?:", ")", "|"],
    *["[ab]", "[^a]", "[é-ü]", "[[:alpha:]]", "[^[:space:]x]", r"[\w-]", r"[\W]"],
    *["[]a]", "[^]a]", "[.$]", "[a-]"],
]
TEXTS = ["", "a", "ab", "é", "aé\0b", "a\nb\n", " a1_ ", "AbÉ", "a\u2003b", "-.$", "aab", "\n"]
STRINGS = [*map(str.encode, TEXTS), b"a\xffb"]


def found(tf, pattern, rewrite, everywhere):
    try:
        replaced = tf.strings.regex_replace(STRINGS, pattern, rewrite, everywhere).numpy()
        matched = tf.strings.regex_full_match(STRINGS, pattern).numpy()
    except tf.errors.InvalidArgumentError:
        return None
    return replaced.tolist(), matched.tolist()


@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
def test_random_patterns():
    rng = random.Random(SEED)
    valid = 0
    for _ in range(CASES):
        parts = [rng.choice(PARTS) for _ in range(rng.randint(1, 5))]
        pattern = rng.choice(FLAGS) + "".join(parts)
        rewrites = ["x", r"<\0>", r"\\", *([r"<\1>"] if "(" in parts else [])]
        arguments = pattern, rng.choice(rewrites), rng.random() < 0.8
        expected = found(tensorflow, *arguments)
        if expected is not None:  # Python's re takes more
            valid += 1
            assert expected == found(tfwire.compat, *arguments), arguments
    assert valid > CASES / 4
