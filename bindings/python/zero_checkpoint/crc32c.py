"""CRC-32C (Castagnoli) by NumPy: many lanes of the data advance together, two bytes at a time, and are then joined.
Not a general CRC library: it sums what checkpoints hold."""
import numpy

_POLYNOMIAL = 0x82F63B78  # reflected
_LANE = 128              # bytes of a lane; even
_GROUP = 1 << 21         # bytes worked on at a time: they should stay in a cache


def _word_table():
    bytes_ = numpy.arange(256, dtype=numpy.uint32)
    for _ in range(8):
        bytes_ = numpy.where(bytes_ & 1, (bytes_ >> 1) ^ numpy.uint32(_POLYNOMIAL), bytes_ >> 1).astype(numpy.uint32)
    words = numpy.arange(1 << 16, dtype=numpy.uint32)
    for _ in range(2):
        words = (words >> 8) ^ bytes_[words & 255]
    return words


_WORDS = _word_table()


def _product(a, b):
    """Product of two polynomials modulo that of the CRC; bit 31 is x^0."""
    result = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            result ^= b
        b = (b >> 1) ^ (_POLYNOMIAL if b & 1 else 0)
    return result


_POWERS = {}


def _power(count):
    """x^(8 count): what multiplies a sum when count bytes follow."""
    if count not in _POWERS:
        result, square, left = 1 << 31, 1 << 23, count  # x^0, x^8
        while left:
            if left & 1:
                result = _product(square, result)
            square, left = _product(square, square), left >> 1
        if len(_POWERS) > 1000:
            _POWERS.clear()
        _POWERS[count] = result
    return _POWERS[count]


_TABLES = {}


def _times(sums, count):
    """Every element of an array of sums, followed by count bytes."""
    if count not in _TABLES:
        values, tables = numpy.arange(256, dtype=numpy.uint32), numpy.zeros((4, 256), numpy.uint32)
        for bit in range(32):
            tables[bit // 8] ^= (values >> bit % 8 & 1) * numpy.uint32(_product(1 << bit, _power(count)))
        _TABLES[count] = tables
    tables = _TABLES[count]
    result = tables[0][sums & 255]
    for byte in (1, 2, 3):
        result ^= tables[byte][sums >> 8 * byte & 255]
    return result


def _plain(data):
    """The sum of bytes (a NumPy array of uint8) begun and ended with 0. Zeros before them change nothing."""
    lanes = -(-data.size // _LANE) or 1
    lanes = 1 << (lanes - 1).bit_length()  # a power of two, so that halves can be joined
    if lanes * _LANE != data.size:
        whole = numpy.zeros(lanes * _LANE, numpy.uint8)
        whole[lanes * _LANE - data.size:] = data
        data = whole
    words = numpy.ascontiguousarray(numpy.ascontiguousarray(data).view("<u2").reshape(lanes, -1).T)
    sums = numpy.zeros(lanes, numpy.uint32)
    low, index, found = sums.view("<u2")[0::2], numpy.empty(lanes, numpy.intp), numpy.empty(lanes, numpy.uint32)
    for word in words:
        numpy.bitwise_xor(low, word, out=index, casting="unsafe")
        numpy.take(_WORDS, index, out=found, mode="wrap")  # no index is outside; "raise" would copy
        sums >>= 16
        sums ^= found
    length = _LANE
    while sums.size > 1:
        sums = _times(sums[0::2], length) ^ sums[1::2]
        length *= 2
    return int(sums[0])


def crc32c(data, before=0):
    """CRC-32C of bytes, a memoryview or an array; `before` is the sum of what stands before them."""
    data = numpy.frombuffer(data, numpy.uint8)
    result = before ^ 0xFFFFFFFF
    for at in range(0, data.size, _GROUP):
        part = data[at:at + _GROUP]
        result = _product(result, _power(part.size)) ^ _plain(part)
    return result ^ 0xFFFFFFFF


def text(number):
    """As manifests write it."""
    return format(number, "08x")
