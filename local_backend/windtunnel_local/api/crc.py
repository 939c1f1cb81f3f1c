"""CRC-32C and CRC-64/NVME in Python, fast enough for objects: hundreds of MB/s, and no dependency.

The standard library has CRC-32 only. A table walks one byte at a time, about 10 MB/s in Python.
Here a chunk is one large integer, a polynomial over GF(2), that is folded until little of it is left:

    x^S = sum of x^e (mod P)   with few terms e, found by search; squared, it holds for 2S and 2e, and so on,

so a long run of leading terms becomes a few shifts and XORs of large integers, each at memory's speed.
What is left, a few kilobytes, goes through the table. Bits are reflected in both CRCs: the integer's
lowest bit is the polynomial's highest term.

`combine` computes the checksum of two concatenated pieces from the checksums of the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Crc:
    """A reflected CRC that starts and ends inverted. ``polynomial``: without its highest term."""

    bits: int
    polynomial: int
    power: int
    """S: x^S modulo the polynomial has few terms."""

    @property
    def size(self) -> int:
        return self.bits // 8

    def update(self, data: bytes, value: int = 0) -> int:
        """The checksum of earlier bytes and ``data``; ``value``: the checksum of the earlier bytes."""
        inverted = (1 << self.bits) - 1
        register = value ^ inverted
        table = _table(self)
        for byte in self._folded(data, register):
            register = table[(register ^ byte) & 0xFF] ^ (register >> 8)
        return register ^ inverted

    def _folded(self, data: bytes, register: int) -> bytes:
        """Bytes that give the same CRC as ``data`` from this register; far fewer, if ``data`` is long."""
        offsets = _offsets(self)
        least = offsets[0]
        length = len(data) * 8
        if length <= 8 * (self.power + least):
            return data
        # Apply the register to the first bits now, so that folding takes it into account.
        number = int.from_bytes(data, "little") ^ register
        scale = (length // (self.power + least)).bit_length() - 1
        while scale >= 3:  # whole bytes only
            cut = least << scale
            if cut + (self.power << scale) > length:
                scale -= 1
                continue
            low = number & ((1 << cut) - 1)
            number >>= cut
            for offset in offsets:
                number ^= low << ((offset << scale) - cut)
            length -= cut
        # The caller applies the register to these bytes again: take it out.
        return (number ^ register).to_bytes(length // 8, "little")

    def combine(self, first: int, second: int, second_length: int) -> int:
        """The checksum of two concatenated pieces, from their own; ``second_length``: bytes of the second."""
        return self._times(first, self._power_of_x(8 * second_length)) ^ second

    def _power_of_x(self, exponent: int) -> int:
        result, base = 1 << (self.bits - 1), 1 << (self.bits - 2)  # 1 and x, reflected
        while exponent:
            if exponent & 1:
                result = self._times(result, base)
            base = self._times(base, base)
            exponent >>= 1
        return result

    def _times(self, left: int, right: int) -> int:
        reflected = _reflected(self.polynomial, self.bits)
        product = 0
        for position in range(self.bits - 1, -1, -1):
            if left >> position & 1:
                product ^= right
            right = (right >> 1) ^ (reflected if right & 1 else 0)
        return product


CRC32 = Crc(32, 0x04C11DB7, 1031)
CRC32C = Crc(32, 0x1EDC6F41, 685)
CRC64NVME = Crc(64, 0xAD93D23594C93659, 865)


class CrcDigest:
    """A CRC with the interface of hashlib. ``crc``: as `Crc.update`, or zlib's; ``size``: bytes of a checksum."""

    def __init__(self, crc: Callable[[bytes, int], int], size: int) -> None:
        self._crc = crc
        self._size = size
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = self._crc(data, self._value)

    def digest(self) -> bytes:
        """The checksum of all bytes so far, most significant byte first."""
        return self._value.to_bytes(self._size, "big")


def _reflected(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


@lru_cache(maxsize=8)
def _table(crc: Crc) -> Sequence[int]:
    reflected = _reflected(crc.polynomial, crc.bits)
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (reflected if value & 1 else 0)
        table.append(value)
    return table


@lru_cache(maxsize=8)
def _offsets(crc: Crc) -> Sequence[int]:
    """S - e for each term x^e of x^S (see the module), in bits, ascending."""
    full = crc.polynomial | 1 << crc.bits
    remainder = 1
    for _ in range(crc.power):
        remainder <<= 1
        if remainder >> crc.bits:
            remainder ^= full
    return sorted(crc.power - term for term in range(crc.bits) if remainder >> term & 1)
