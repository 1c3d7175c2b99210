"""Arrow structs that a faulty producer might hand over: an error with a text, and each struct released once."""

import ctypes as c
import struct

import pytest

from support import empty, one_by_one


class Schema(c.Structure):
    pass


class Array(c.Structure):
    pass


class Stream(c.Structure):
    pass


RELEASE = {kind: c.CFUNCTYPE(None, c.POINTER(kind)) for kind in (Schema, Array, Stream)}
GET_SCHEMA = c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Schema))
GET_NEXT = c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Array))
GET_LAST_ERROR = c.CFUNCTYPE(c.c_void_p, c.POINTER(Stream))

Schema._fields_ = [
    ("format", c.c_char_p), ("name", c.c_char_p), ("metadata", c.c_char_p), ("flags", c.c_int64), ("n_children", c.c_int64),
    ("children", c.POINTER(c.POINTER(Schema))), ("dictionary", c.POINTER(Schema)), ("release", RELEASE[Schema]), ("private", c.c_void_p),
]
Array._fields_ = [
    ("length", c.c_int64), ("null_count", c.c_int64), ("offset", c.c_int64), ("n_buffers", c.c_int64), ("n_children", c.c_int64),
    ("buffers", c.POINTER(c.c_void_p)), ("children", c.POINTER(c.POINTER(Array))), ("dictionary", c.POINTER(Array)),
    ("release", RELEASE[Array]), ("private", c.c_void_p),
]
Stream._fields_ = [
    ("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", GET_LAST_ERROR), ("release", RELEASE[Stream]),
    ("private", c.c_void_p),
]

new_capsule = c.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]

released = []
kept = []  # what the structs point to


def releaser(kind):
    @RELEASE[kind]
    def release(pointer):
        released.append(kind)
        pointer.contents.release = RELEASE[kind](0)

    return release


RELEASERS = {kind: releaser(kind) for kind in RELEASE}


def pointers(kind, children):
    array = (c.POINTER(kind) * max(len(children), 1))(*[c.pointer(child) if child else c.POINTER(kind)() for child in children])
    kept.append((array, children))
    return array


def schema(format, children=(), dictionary=None, **fields):
    made = Schema(format=format, name=b"key", n_children=len(children), release=RELEASERS[Schema])
    made.children = pointers(Schema, children)
    if dictionary:
        made.dictionary = c.pointer(dictionary)
    return set_fields(made, fields)


def array(length, *buffers, children=(), dictionary=None, **fields):
    made = Array(length=length, null_count=-1, n_buffers=len(buffers), n_children=len(children), release=RELEASERS[Array])
    memory = [buffer if buffer is None else c.create_string_buffer(buffer, len(buffer)) for buffer in buffers]
    made.buffers = (c.c_void_p * max(len(memory), 1))(*[buffer if buffer is None else c.addressof(buffer) for buffer in memory])
    kept.append(memory)
    made.children = pointers(Array, children)
    if dictionary:
        made.dictionary = c.pointer(dictionary)
    return set_fields(made, fields)


def set_fields(made, fields):
    for name, value in fields.items():
        setattr(made, name, value)
    kept.append(made)
    return made


def without_children(made):
    made.children = c.POINTER(c.POINTER(Schema))()
    return made


class Column:
    def __init__(self, schema, array):
        self.capsules = new_capsule(c.addressof(schema), b"arrow_schema", None), new_capsule(c.addressof(array), b"arrow_array", None)

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsules


class Source:
    def __init__(self, stream):
        self.capsule = new_capsule(c.addressof(stream), b"arrow_array_stream", None)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.capsule


def stream(schema, *arrays, error=0, text=b"the disk is gone", **fields):
    left, end, text = list(arrays), Array(), text and c.create_string_buffer(text)

    @GET_SCHEMA
    def get_schema(_, out):
        if schema:
            c.memmove(out, c.addressof(schema), c.sizeof(Schema))
        return 0 if schema else 5

    @GET_NEXT
    def get_next(_, out):
        if not left and error:
            return error
        c.memmove(out, c.addressof(left.pop(0) if left else end), c.sizeof(Array))
        return 0

    @GET_LAST_ERROR
    def get_last_error(_):
        return text and c.addressof(text)

    made = Stream(get_schema=get_schema, get_next=get_next, get_last_error=get_last_error, release=RELEASERS[Stream])
    kept.append((get_schema, get_next, get_last_error))
    return set_fields(made, fields)


def offsets(*values, code="i"):
    return struct.pack(f"={len(values)}{code}", *values)


def view(length, buffer, offset, prefix=b"abcd"):
    return struct.pack("=i4sii", length, prefix, buffer, offset)


INTEGERS = struct.pack("=3q", 1, 2, 3)
TEXT = offsets(0, 1, 2, 3), b"abc"
LENGTHS = struct.pack("=q", 20)
MOST = 2**63 - 1


@pytest.fixture(autouse=True)
def forget():
    released.clear()
    yield
    kept.clear()


def counts():
    return {kind: released.count(kind) for kind in RELEASE if released.count(kind)}


@pytest.mark.parametrize("make, keys", [
    (lambda: Column(schema(b"l"), array(3, None, INTEGERS)), [1, 2, 3]),
    (lambda: Column(schema(b"l"), array(2, None, INTEGERS, offset=1)), [2, 3]),
    (lambda: Column(schema(b"l"), array(3, b"\5", INTEGERS)), [1, 3]),
    (lambda: Column(schema(b"u"), array(3, None, *TEXT)), ["a", "b", "c"]),
    (lambda: Column(schema(b"u"), array(0, None, None, None)), []),
    (lambda: Column(schema(b"u"), array(2, None, offsets(0, 0, 0), None)), [""]),
    (lambda: Column(schema(b"vu"), array(2, None, view(3, 0, 0) + view(14, 0, 1), b"x" * 20, LENGTHS)), ["abc", "x" * 14]),
    (lambda: Column(schema(b"w:0"), array(3, None, None)), [""]),
    (lambda: Column(schema(b"c", dictionary=schema(b"u")), array(2, None, b"\2\0", dictionary=array(3, None, *TEXT))), ["c", "a"]),
    # An index under a null may be anything.
    (lambda: Column(schema(b"c", dictionary=schema(b"u")), array(2, b"\1", b"\2\x63", dictionary=array(3, None, *TEXT))), ["c"]),
    (lambda: Column(schema(b"+s", [schema(b"l")]), array(2, None, offset=1, children=[array(3, None, INTEGERS)])), [2, 3]),
    (lambda: Source(stream(schema(b"l"), array(3, None, INTEGERS), array(1, None, INTEGERS))), [1, 2, 3]),
    (lambda: Source(stream(schema(b"l"))), []),
])
def test_sound_structs_are_read_and_released(make, keys):
    f = empty()
    for call in (f.update, f.contains_many):
        released.clear()
        call(make())
        assert f == one_by_one(keys)
        arrays = released.count(Array)
        assert counts() in ({Schema: 1, Array: 1}, {Schema: 1, Stream: 1} | ({Array: arrays} if arrays else {}))


FORGED = {
    "released schema": lambda: Column(schema(b"l", release=RELEASE[Schema](0)), array(3, None, INTEGERS)),
    "released array": lambda: Column(schema(b"l"), array(3, None, INTEGERS, release=RELEASE[Array](0))),
    "released stream": lambda: Source(stream(schema(b"l"), release=RELEASE[Stream](0))),
    "no data": lambda: Column(schema(b"l"), array(3, None, None)),
    "no buffers": lambda: Column(schema(b"l"), array(3)),
    "no list of buffers": lambda: Column(schema(b"l"), array(3, n_buffers=2, buffers=c.POINTER(c.c_void_p)())),
    "negative number of buffers": lambda: Column(schema(b"l"), array(3, None, INTEGERS, n_buffers=-1)),
    "negative length": lambda: Column(schema(b"l"), array(-3, None, INTEGERS)),
    "negative offset": lambda: Column(schema(b"l"), array(3, None, INTEGERS, offset=-1)),
    "overflow": lambda: Column(schema(b"l"), array(MOST, None, INTEGERS, offset=MOST)),
    "no format": lambda: Column(schema(None), array(3, None, INTEGERS)),
    "empty format": lambda: Column(schema(b""), array(3, None, INTEGERS)),
    "unknown format": lambda: Column(schema(b"\xff?"), array(3, None, INTEGERS)),
    "no width": lambda: Column(schema(b"w:"), array(3, None, INTEGERS)),
    "negative width": lambda: Column(schema(b"w:-1"), array(3, None, INTEGERS)),
    "large width": lambda: Column(schema(b"w:9223372036854775807"), array(3, None, INTEGERS)),
    "no offsets": lambda: Column(schema(b"u"), array(3, None, None, b"abc")),
    "no text": lambda: Column(schema(b"u"), array(3, None, TEXT[0], None)),
    "no buffer of text": lambda: Column(schema(b"u"), array(3, None, TEXT[0])),
    "offsets that decrease": lambda: Column(schema(b"u"), array(3, None, offsets(2, 1, 3, 3), b"abc")),
    "a negative offset of a value": lambda: Column(schema(b"u"), array(3, None, offsets(0, -3, 1, 3), b"abc")),
    "a negative last offset": lambda: Column(schema(b"u"), array(3, None, offsets(0, 1, 2, -3), b"abc")),
    "a negative last large offset": lambda: Column(schema(b"U"), array(3, None, offsets(0, 1, 2, -3, code="q"), b"abc")),
    "a view of no buffer": lambda: Column(schema(b"vu"), array(1, None, view(14, 7, 1), b"x" * 20, LENGTHS)),
    "a view of a negative buffer": lambda: Column(schema(b"vu"), array(1, None, view(14, -1, 1), b"x" * 20, LENGTHS)),
    "a view past its buffer": lambda: Column(schema(b"vu"), array(1, None, view(14, 0, 7), b"x" * 20, LENGTHS)),
    "a view before its buffer": lambda: Column(schema(b"vu"), array(1, None, view(14, 0, -1), b"x" * 20, LENGTHS)),
    "a view of negative length": lambda: Column(schema(b"vu"), array(1, None, view(-1, 0, 0), b"x" * 20, LENGTHS)),
    "views without lengths": lambda: Column(schema(b"vu"), array(1, None, view(3, 0, 0))),
    "a buffer of views of negative length": lambda: Column(schema(b"vu"), array(1, None, view(14, 0, 0), b"x" * 20, struct.pack("=q", -5))),
    "indices without values": lambda: Column(schema(b"c", dictionary=schema(b"u")), array(1, None, b"\0")),
    "an index past the values": lambda: Column(schema(b"c", dictionary=schema(b"u")), array(1, None, b"\3", dictionary=array(3, None, *TEXT))),
    "a negative index": lambda: Column(schema(b"c", dictionary=schema(b"u")), array(1, None, b"\xff", dictionary=array(3, None, *TEXT))),
    "indices that are floats": lambda: Column(schema(b"f", dictionary=schema(b"u")), array(1, None, b"\0" * 4, dictionary=array(3, None, *TEXT))),
    "no list of children": lambda: Column(without_children(schema(b"+s", [schema(b"l")])), array(3, None)),
    "a child that is null": lambda: Column(schema(b"+s", [None]), array(3, None)),
    "an array's child that is null": lambda: Column(schema(b"+s", [schema(b"l")]), array(3, None, children=[None])),
    "a child that is too short": lambda: Column(schema(b"+s", [schema(b"l")]), array(9, None, children=[array(3, None, INTEGERS)])),
    "more arrays than columns": lambda: Column(schema(b"+s", [schema(b"l")]), array(3, None, children=[array(3, None, INTEGERS)] * 2)),
    "negative number of children": lambda: Column(schema(b"+s", n_children=-1), array(3, None)),
    "a stream without get_schema": lambda: Source(stream(schema(b"l"), get_schema=GET_SCHEMA(0))),
    "a stream without get_next": lambda: Source(stream(schema(b"l"), get_next=GET_NEXT(0))),
    "a stream that fails": lambda: Source(stream(schema(b"l"), error=5)),
    "a stream that fails without text": lambda: Source(stream(schema(b"l"), error=5, text=None)),
    "a stream that fails without get_last_error": lambda: Source(stream(schema(b"l"), error=5, get_last_error=GET_LAST_ERROR(0))),
    "a stream that fails with bytes": lambda: Source(stream(schema(b"l"), error=5, text=b"\xff")),
    "a stream without schema": lambda: Source(stream(None)),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_structs_are_errors(name):
    f = empty()
    for call in (f.update, f.contains_many):
        released.clear()
        keys = FORGED[name]()
        with pytest.raises((TypeError, ValueError)) as error:
            call(keys)
        assert len(str(error.value)) > 10
        assert all(count == 1 for count in counts().values()), counts()
        if "released" not in name:
            assert counts().keys() & {Array, Stream}, "nothing was released"
    if "without" not in name and "fails" in name and "bytes" not in name:
        assert "the disk is gone" in str(error.value)
    assert f == empty()


def test_what_came_before_a_failure_of_the_stream_stays():
    f = empty()
    with pytest.raises(ValueError, match="the disk is gone"):
        f.update(Source(stream(schema(b"l"), array(3, None, INTEGERS), error=5)))
    assert f == one_by_one([1, 2, 3]) and counts() == {Schema: 1, Array: 1, Stream: 1}
