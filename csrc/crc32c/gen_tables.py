"""Writes crc32c_tables.h: every constant of the checksum, from polynomial arithmetic.

    python3 csrc/crc32c/gen_tables.py > csrc/crc32c/crc32c_tables.h

Polynomials over GF(2) are ints here in the order the CRC uses, reflected: bit 31 of a residue is
the coefficient of x^0, bit 0 that of x^31. Multiplying by x is then a shift to the right.
"""

from collections.abc import Iterable

POLYNOMIAL = 0x82F63B78  # Castagnoli, reflected, without its x^32
ONE = 1 << 31
ORDER = 2**31 - 1  # x to this power is 1, so exponents count modulo it
NUM_WORD_FACTORS = 96
BYTES_OF_BITS = """\
/* All sums of the values of a byte's bits, by bytes: x is the sum of the bits above. */
#define OF_1_BIT(x, a) (x), (x) ^ (a)
#define OF_2_BITS(x, a, b) OF_1_BIT(x, a), OF_1_BIT((x) ^ (b), a)
#define OF_3_BITS(x, a, b, c) OF_2_BITS(x, a, b), OF_2_BITS((x) ^ (c), a, b)
#define OF_4_BITS(x, a, b, c, d) OF_3_BITS(x, a, b, c), OF_3_BITS((x) ^ (d), a, b, c)
#define OF_5_BITS(x, a, b, c, d, e) OF_4_BITS(x, a, b, c, d), OF_4_BITS((x) ^ (e), a, b, c, d)
#define OF_6_BITS(x, a, b, c, d, e, f) \\
    OF_5_BITS(x, a, b, c, d, e), OF_5_BITS((x) ^ (f), a, b, c, d, e)
#define OF_7_BITS(x, a, b, c, d, e, f, g) \\
    OF_6_BITS(x, a, b, c, d, e, f), OF_6_BITS((x) ^ (g), a, b, c, d, e, f)
#define OF_BYTES(a, b, c, d, e, f, g, h) \\
    {OF_7_BITS(0, a, b, c, d, e, f, g), OF_7_BITS(h, a, b, c, d, e, f, g)}
"""


def times_x(a: int) -> int:
    """a * x."""
    return a >> 1 ^ (POLYNOMIAL if a & 1 else 0)


def multiply(a: int, b: int) -> int:
    """a * b."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = times_x(b)
    return product


def power(exponent: int) -> int:
    """x ** exponent, negative ones too."""
    result, square, exponent = ONE, times_x(ONE), exponent % ORDER
    while exponent:
        if exponent & 1:
            result = multiply(result, square)
        square = multiply(square, square)
        exponent >>= 1
    return result


def slices() -> list[list[int]]:
    """Row k, entry i: what bit i of a byte does to the register when k more bytes follow it."""
    return [[power(39 + 8 * k - i) for i in range(8)] for k in range(16)]


def factor(exponent: int) -> int:
    """What to multiply a 64-bit half by, carry-less, so that it gets times x ** exponent.

    A residue in the low half of a 64-bit operand stands for itself times x^32, and a carry-less
    product of reflected operands for the product times x: hence 33 less.
    """
    return power(exponent - 33)


def fold(distance: int) -> list[int]:
    """The factors that carry 16 bytes over a distance in bytes.

    16 bytes are L * x^64 + H, the first 8 of them L and the others H.
    """
    return [factor(8 * distance + 64), factor(8 * distance)]


def block(name: str, vec_size: int, rows: int, words: int) -> str:
    """The shape of a block (see crc32c_fold_template.h) and its factors.

    The result of a stream is a register r. Added to the last row, it must be r * x^96 (the first 4
    of 16 bytes) times the power of x for the bytes between the stream's end and the block's, and
    divided by what the next fold will multiply it with. r, too, is in a low half and so already
    times x^32.
    """
    row_size, stream_size = 4 * vec_size, 8 * words * rows
    to_next = row_size + 3 * stream_size
    streams = [factor(8 * ((2 - i) * stream_size - to_next) + 96 - 32) for i in range(3)]
    return "\n".join(
        [
            f"enum {{ BLOCK_ROWS_{name} = {rows}, STREAM_WORDS_{name} = {words} }};",
            f"static const uint64_t block_fold_{name}[2] = {{{words_of(fold(to_next))}}};",
            f"static const uint32_t stream_factors_{name}[3] = {{\n    {words_of(streams)}}};",
            "",
        ]
    )


def combine_powers() -> list[list[int]]:
    """Row k, entry d: x ** (d * 16 ** k)."""
    return [[power(d << 4 * k) for d in range(16)] for k in range(8)]


def words_of(values: Iterable[int]) -> str:
    """C constants, eight to a line."""
    texts = [f"0x{value:08x}" for value in values]
    return ",\n    ".join(", ".join(texts[i : i + 8]) for i in range(0, len(texts), 8))


def row(name: str, values: list[int], bits: int = 32) -> str:
    """A one-dimensional table."""
    return f"static const uint{bits}_t {name}[{len(values)}] = {{\n    {words_of(values)}}};\n"


def table(name: str, rows: list[list[int]]) -> str:
    """A two-dimensional table."""
    body = ",\n".join(f"    {{{words_of(values)}}}" for values in rows)
    return f"static const uint32_t {name}[{len(rows)}][{len(rows[0])}] = {{\n{body},\n}};\n"


def byte_table(name: str, rows: list[list[int]]) -> str:
    """Rows for all bytes, which the compiler makes of those for their bits."""
    body = ",\n".join(f"    OF_BYTES(\n    {words_of(values)})" for values in rows)
    return f"static const uint32_t {name}[{len(rows)}][256] = {{\n{body},\n}};\n"


def header() -> str:
    """The text of crc32c_tables.h."""
    assert power(ORDER) == ONE
    return "\n".join(
        [
            "/* SPDX-License-Identifier: Apache-2.0 */",
            "/* Generated by gen_tables.py, which explains them; do not edit. */",
            "#ifndef TFWIRE_CRC32C_TABLES_H",
            "#define TFWIRE_CRC32C_TABLES_H",
            "",
            "#include <stdint.h>",
            "",
            BYTES_OF_BITS,
            "/* What a byte does to the register when k more bytes follow it. */",
            byte_table("slices", slices()),
            "/* x to the power d * 16^k. */",
            table("powers", combine_powers()),
            "/* Carries 8 bytes over n bytes, -16 to 264. */",
            "#define FACTOR_OVER(n) byte_factors[16 + (n)]",
            row("byte_factors", [factor(8 * distance) for distance in range(-16, 265)], bits=64),
            "/* The two that carry 16 bytes over n bytes: of the first 8, and of the others. */",
            "#define FOLD_OVER(n) &FACTOR_OVER((n) + 8), &FACTOR_OVER(n)",
            "",
            "/* Carries 16 lanes of 16 bytes, side by side, to the end of the last. */",
            table("folds_to_end", [fold(16 * lanes) for lanes in range(15, -1, -1)]),
            "/* Blocks of vectors of 16, 32 and 64 bytes. */",
            block("16", 16, rows=4, words=5),
            block("32", 32, rows=4, words=5),
            block("64", 64, rows=8, words=2),
            "/* The factor that carries a register over n words. */",
            f"enum {{ NUM_WORD_FACTORS = {NUM_WORD_FACTORS} }};",
            row("word_factors", [factor(64 * n) for n in range(NUM_WORD_FACTORS)]),
            "#endif /* TFWIRE_CRC32C_TABLES_H */",
        ]
    )


if __name__ == "__main__":
    print(header())
