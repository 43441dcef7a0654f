"""Breaking files: bytes anywhere, numbers and words where they hurt, and what is packed under right checksums."""

import gzip
import io
import json
import random
import struct
import zipfile

import numpy as np
import zstandard

NUMBERS = (
    0,
    1,
    2,
    7,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**24,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
)
WORDS = (
    b"", b"-0.0", b"-1", b"1e400", b"1e-320", b"0.1e-300", b"nan", b"inf", b"null", b"true", b"999999999999999999999",
    b'"', b"'", b"\\", b"\0", b"\xef", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\n", b"\n\r", b"\n\n", b"\r\n", b",",
    b";", b"\t", b"{", b"}", b"[", b"]", b"[[[[[[[[[[[[[[[[", b"%", b"@data\n", b"@attribute x {", b"?", b"a" * 3000,
    b"\xed\xa0\x80", "\u2028".encode(), "\x85".encode(), b"\x1b]0;owned\x07", b"instance", b"label", b"model",
    b"-C 9", b"1:1", b"\\ud800", b"{}", b"[]",
)  # fmt: skip


def mutated(name: str, data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Return the file broken in some way; what is packed is broken inside half of the time."""
    if rng.random() < 0.5:
        if name.endswith(".gz"):
            return gzip.compress(
                mutated(name[:-3], gzip.decompress(data), others, rng), 1, mtime=0
            )
        if name.endswith(".zst"):
            return zstandard.compress(
                mutated(name[:-4], zstandard.decompress(data), others, rng), 1
            )
        if name.endswith(".npz"):
            return _archive(data, rng)
        if name.endswith((".stats", ".model", ".round")):
            return _state(data, rng)
    broken = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5, 10))):
        _once(broken, others, rng)
    return bytes(broken)


def _once(data: bytearray, others: list[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, 16, 64)))
    how = rng.randrange(9)
    if how == 0 and data:
        data[at % len(data)] ^= 1 << rng.randrange(8)
    elif how == 1 and data:
        data[at % len(data)] = rng.randrange(256)
    elif how == 2:
        data[at:end] = b""
    elif how == 3:
        data[at:at] = data[at:end] * rng.choice((1, 1, 2, 50))
    elif how == 4:
        number = rng.choice(NUMBERS) * rng.choice((1, 1, 1, -1)) + rng.choice(
            (0, 0, 1, -1)
        )
        size = rng.choice((1, 2, 4, 8))
        data[at : at + size] = (number % 2 ** (8 * size)).to_bytes(
            size, rng.choice(("little", "little", "big"))
        )
    elif how == 5:
        data[at : rng.choice((at, end))] = rng.choice(WORDS)
    elif how == 6:
        other = rng.choice(others)
        start = rng.randrange(len(other) + 1)
        data[at:end] = other[start : start + rng.choice((1, 4, 16, 64, 1000))]
    elif how == 7:
        number = rng.choice(NUMBERS)  # as Parquet's footers have it
        data[at : at + 1] = b"".join(
            bytes([number >> shift & 127 | 128])
            for shift in range(0, 63, 7)
            if number >> shift
        )
    elif rng.random() < 0.3:
        del data[at:]


def _archive(data: bytes, rng: random.Random) -> bytes:
    """Break arrays of an NPZ file, or what is said of them, in an archive that is whole."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    if rng.random() < 0.5:
        array = np.load(io.BytesIO(members[name]), allow_pickle=False).copy()
        members[name] = _npy(_array(array, rng))
    elif rng.random() < 0.7:
        broken = bytearray(members[name])
        _once(broken, list(members.values()), rng)
        members[name] = bytes(broken)
    else:
        members[
            rng.choice(("scores.npy", "labels.npy", "format.npy", "x", "indptr.npy"))
        ] = members.pop(name)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for own, content in members.items():
            archive.writestr(own, content)
    return file.getvalue()


def _array(array, rng: random.Random):
    how = rng.randrange(4)
    if how == 0 and array.size and array.dtype.kind in "iuf":
        number = rng.choice(NUMBERS) * rng.choice((1, -1))
        at = rng.randrange(array.size)
        if array.dtype.kind == "f":
            array.flat[at] = rng.choice(
                (-0.0, -1.0, 1.5, np.nan, np.inf, 1e-310, 1e300)
            )
        else:
            info = np.iinfo(array.dtype)
            array.flat[at] = max(info.min, min(info.max, number))
    elif how == 1 and array.dtype.kind in "biuf":
        return array.astype(
            rng.choice(("i1", "u1", "i4", "u8", "f4", "f8", "c8", "?", "S3", "U3"))
        )
    elif how == 2:
        return array.reshape(-1)[: rng.randrange(array.size + 1)]
    else:
        return np.array([array] * rng.choice((0, 1, 2)))
    return array


def _npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _state(data: bytes, rng: random.Random) -> bytes:
    """Break the header or the arrays of a state file under a right checksum."""
    from safetensors.numpy import load

    from mlconsensus.federated import statistics_files

    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(
        json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["mlconsensus"])[
            "header"
        ]
    )
    arrays = {name: array.copy() for name, array in load(data).items()}
    if rng.random() < 0.5 or not arrays:
        key = rng.choice([*header, "x"])
        values = (
            None, 0, -1, 1, 2**53, 10**400, 1e308, True, "", "a", "MLCM-r", "model", "round", [], ["a"], ["a", "a"],
            {}, {"alpha": 10**400}, {"alpha": -1}, {"weights": {"a": 1e-161}}, {"n_iter": 10**9}, [[]], ["\x1b[2J"],
            {"alpha": "x"}, ["a"] * 3000,
        )  # fmt: skip
        header[key] = rng.choice(values)
    else:
        name = rng.choice(sorted(arrays))
        changed = _array(arrays[name], rng)
        arrays[name] = (
            changed
            if changed.dtype.kind in "iuf" and changed.dtype.itemsize == 8
            else arrays[name]
        )
        if rng.random() < 0.2:
            arrays[rng.choice(("x", "known:x", "total.x"))] = arrays.pop(name)
    file = io.BytesIO()
    try:
        header.pop("version", None)
        statistics_files.write_state(file, header, arrays)
    except (ValueError, TypeError, OverflowError):  # what no JSON holds
        return data
    return file.getvalue()
