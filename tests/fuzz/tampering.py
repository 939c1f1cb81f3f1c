"""Breaks requests on their way: bodies before they are signed, and what is around a signed body after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.fuzz.wire import Message

Change = Callable[[Message, Random], Message]
_CONTENT_TYPES = [
    "application/json", "application/x-amz-json-1.0", "application/x-amz-json-1.1", "application/cbor", "text/xml",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain; charset=utf-16", "", "é/\t",
]  # fmt: skip
_TARGETS = ["SageMaker.", ".", "SageMaker.__class__", "Logs_20140328.GetLogEvents", "x" * 3000,
    "SageMaker.listtrainingjobs"]  # fmt: skip
METHODS = [
    "GET",
    "PUT",
    "POST",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "x",
]
PATHS = [
    "/%00", "/%2e%2e/%2e%2e/etc/passwd", "//", "//a//b", "/./", "/../", "/a/../../b", "/%", "/%zz", "/%ff%fe",
    "/;a=b",
    "/?", "/?&&&=&", "/?a=%00", "/?list-type=2&max-keys=-1", "/fuzz-bucket?uploads&versioning&acl", "/" + "a" * 9000,
    "/fuzz-bucket/" + "%C3%BC" * 600, "/fuzz-bucket/%2f%2e%2e%2f",
    "/service/GraniteServiceVersion20100801/operation/X",
    "/service//operation/", "/health?x", "/health/", "/fuzz-bucket?delete",
    "/fuzz-bucket?max-keys=99999999999999999999",
    "/fuzz-bucket/a?partNumber=1&uploadId=x", "/fuzz-bucket/a?uploadId=../../x",
    "/fuzz-bucket?continuation-token=%00",
]  # fmt: skip
_DOCUMENTS = [
    b"", b"{", b"null", b"[]", b'"x"', b"1", b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":1e999}', b'{"a":1,"a":2}',
    b"\xff\xfe{}",
    b'\xef\xbb\xbf{}', b'{"TrainingJobName":"fuzz-1","TrainingJobName":["x"]}', b'{"a":"\xff"}',
    b'{"a":"\\ud800"}', b"[" * 90_000,
    b'{"a":' * 50_000, b'{"\x00":"\x00"}', b'{"MaxResults":' + b"9" * 6000 + b"}", b"Action=", b"Action",
    b"Action=%ff&&=",
    b"Action=GetRole&RoleName=" + b"x" * 9000, b"Action=GetMetricData&" + b"MetricDataQueries.member.1.Id=x&" * 2000,
    b"Action=GetMetricData&MetricDataQueries.member.x.Id=1", b"&" * 4000, b"a=b&" * 20_000, b"<a/>",
    b"<Delete></Delete>",
    b"<Delete><Object><Key>a</Key></Object>", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', b"<a>" * 20_000,
    b"<\xff/>",
    b"<CompleteMultipartUpload><Part><PartNumber>x</PartNumber><ETag>1</ETag></Part></CompleteMultipartUpload>",
    b"\xbf\xff", b"\xa1", b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", b"\xd8\x2a" * 3000, b"\x81" * 5000,
    b"\xc1\xfb\x7f\xf0" + b"\0" * 6,
    b"\xa1\x61a\xc1\x1b" + b"\xff" * 8, b"\xa2\x61a\x01\x61a\x02", b"\xa1\x01\x02",
    b"\xc2\x5a\x00\x00\xff\xff" + b"\xff" * 65_535,
]  # fmt: skip


def body(message: Message, random: Random) -> Message:
    """Another body, or the same one with bytes cut, flipped, doubled or put in."""
    data = bytearray(message.body)
    choice = random.random()
    if choice < 0.5 or not data:
        return replace(message, body=random.choice(_DOCUMENTS))
    place = random.randrange(len(data))
    if choice < 0.65:
        del data[place:]
    elif choice < 0.8:
        data[place] ^= 1 << random.randrange(8)
    elif choice < 0.9:
        data[place:place] = random.choice([b"\xff", b"\0", b"\xc3", b"\xed\xa0\x80", b'"', b"}", b"&", b"<"])
    else:
        data *= 2
    return replace(message, body=bytes(data))


def oversized(message: Message, random: Random) -> Message:
    """More than any document may have."""
    return replace(message, body=b'{"a":"' + b"x" * (4 << 20) + b'"}')


def content_type(message: Message, random: Random) -> Message:
    """A body that is called something else."""
    return message.with_headers(content_type=random.choice(_CONTENT_TYPES).encode("ascii", "ignore").decode())


def target(message: Message, random: Random) -> Message:
    """Another X-Amz-Target, or one where none belongs."""
    return message.with_headers(x_amz_target=random.choice(_TARGETS))


def method(message: Message, random: Random) -> Message:
    """Another method."""
    return replace(message, method=random.choice(METHODS))


def path(message: Message, random: Random) -> Message:
    """Another path and query."""
    return replace(message, target=random.choice(PATHS))


def header(message: Message, random: Random) -> Message:
    """A header of S3 or of HTTP with a value that makes no sense."""
    names = [
        "Range", "If-Match", "If-None-Match", "If-Modified-Since", "Content-MD5", "Expect", "Content-Encoding",
        "x-amz-checksum-crc32", "x-amz-checksum-crc64nvme", "x-amz-copy-source", "x-amz-copy-source-range",
        "x-amz-meta-\x7e",
        "x-amz-expected-bucket-owner", "x-amz-trailer", "x-amz-decoded-content-length", "x-amz-tagging",
        "smithy-protocol",
        "x-amz-metadata-directive", "x-amz-security-token", "Date", "Cookie", "Origin", "X-Forwarded-Host",
        "Forwarded",
    ]  # fmt: skip
    values = [
        "",
        "-1",
        "9" * 40,
        "bytes=0-",
        "*",
        '"',
        "\u00e9",
        "a" * 4000,
        "../..",
        "%0d%0aX: y",
        "rpc-v2-cbor",
        "100-continue",
        "x=1",
    ]
    value = random.choice(values).encode("utf-8").decode("latin-1")
    return message.with_headers(**{random.choice(names).replace("-", "_"): value})


# Before the signature: the request is the owner's, whatever nonsense it is.
BEFORE: list[Change] = [
    body,
    body,
    body,
    body,
    content_type,
    target,
    method,
    path,
    path,
    header,
    header,
    header,
]


def truncated(message: Message, random: Random) -> Message:
    """Fewer bytes than announced, and then the end."""
    return replace(message, body=message.body[: len(message.body) // 2], half_close=True)


def wrong_length(message: Message, random: Random) -> Message:
    """A Content-Length that is none, negative, twice there, or too large."""
    if random.random() < 0.3:
        return replace(message, headers=[*message.headers, ("Content-Length", "3")], half_close=True)
    length = random.choice(["-1", "abc", "", "1e3", "99999999999999999999", "0x10", "+5", "5, 5", " 4 4"])
    return replace(message.with_headers(content_length=length), half_close=True)


def chunked(message: Message, random: Random) -> Message:
    """The body in chunks, right or wrong, perhaps with a length beside them."""
    data = message.body
    framed = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data) if data else b"0\r\n\r\n"
    wrong = [
        b"zz\r\n",
        b"-1\r\n",
        b"ffffffffffffffffff\r\n",
        b"5;" + b"x" * 9000,
        b"5\r\nab",
        b"0\r\nX: y\r\n\r\n",
        framed * 2,
    ]
    body_ = framed if random.random() < 0.5 else random.choice(wrong)
    headers = [(n, v) for n, v in message.headers if n.lower() != "content-length" or random.random() < 0.2]
    coding = random.choice(
        ["chunked", "chunked", "chunked", "Chunked", "gzip, chunked", "identity", "chunked, chunked", "x", ""]
    )
    return replace(message, headers=[*headers, ("Transfer-Encoding", coding)], body=body_, half_close=True)


def headers_twice(message: Message, random: Random) -> Message:
    """A header that steers the request a second time, unsigned."""
    name, value = random.choice(
        [
            ("Host", "evil.example"), ("X-Amz-Date", "20200101T000000Z"), ("X-Amz-Target",
            "SageMaker.DeleteTrainingJob"),
            ("Authorization", "x"), ("x-amz-security-token", "x"), ("x-amz-meta-a", "b"), ("Content-Type",
            "text/plain"),
        ]
    )  # fmt: skip
    return replace(message, headers=[*message.headers, (name, value)])


def enormous_headers(message: Message, random: Random) -> Message:
    """More headers, or longer ones, than any client sends."""
    extra = (
        [("X-Filler", "y" * 70_000)] if random.random() < 0.5 else [(f"X-F-{n}", "y") for n in range(2000)]
    )
    return replace(message, headers=[*message.headers, *extra], half_close=True)


def no_http(message: Message, random: Random) -> Message:
    """Bytes that are no request, or one of another time."""
    raw = message.raw()
    heads = [
        raw.replace(b" HTTP/1.1", b"", 1), raw.replace(b"HTTP/1.1", b"HTTP/9.9", 1), raw.replace(b"HTTP/1.1",
        b"HTTP/1.0", 1),
        b"\r\n" * 3 + raw, b"\0" + raw, raw.replace(b"\r\n", b"\n"), raw.replace(b": ", b" : ", 1),
        raw.replace(b"\r\n", b"\r\n x: y\r\n", 1),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET /\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        raw.replace(b"\r\n", b"\r\nX-Bad: a\rb\r\n", 1), raw.replace(b"\r\n", b"\r\nX-Bad: a\0b\r\n", 1),
        raw.replace(b"\r\n", b"\r\nConnection: upgrade\r\nUpgrade: websocket\r\n", 1),
        raw.replace(b"\r\n", b"\r\nX Y: 1\r\n", 1), raw.replace(b"\r\n",
        b"\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n", 1),
    ]  # fmt: skip
    return replace(message, head=random.choice(heads), body=b"", half_close=True)


# After it: what a stranger between client and server, or a broken client, would do.
AFTER: list[Change] = [
    truncated,
    wrong_length,
    chunked,
    chunked,
    headers_twice,
    enormous_headers,
    no_http,
    no_http,
]
