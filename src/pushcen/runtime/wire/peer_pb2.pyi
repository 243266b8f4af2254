from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Signed(_message.Message):
    __slots__ = ("body", "signature", "certificate")
    BODY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    body: bytes
    signature: bytes
    certificate: bytes
    def __init__(self, body: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., certificate: _Optional[bytes] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("credited", "accepted", "sender")
    CREDITED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    credited: bytes
    accepted: bytes
    sender: str
    def __init__(self, credited: _Optional[bytes] = ..., accepted: _Optional[bytes] = ..., sender: _Optional[str] = ...) -> None: ...

class Holding(_message.Message):
    __slots__ = ("generation", "owner", "fingerprint")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    generation: int
    owner: str
    fingerprint: bytes
    def __init__(self, generation: _Optional[int] = ..., owner: _Optional[str] = ..., fingerprint: _Optional[bytes] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("major", "minor", "peer", "boot", "address", "run", "about", "link", "known", "known_boot", "refusal", "text", "news", "returned", "refound", "holds", "agree", "varies")
    class AboutEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class VariesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MAJOR_FIELD_NUMBER: _ClassVar[int]
    MINOR_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    BOOT_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    KNOWN_BOOT_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    NEWS_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    REFOUND_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    AGREE_FIELD_NUMBER: _ClassVar[int]
    VARIES_FIELD_NUMBER: _ClassVar[int]
    major: int
    minor: int
    peer: str
    boot: int
    address: str
    run: bytes
    about: _containers.ScalarMap[str, str]
    link: Link
    known: str
    known_boot: int
    refusal: str
    text: str
    news: bool
    returned: Signed
    refound: Signed
    holds: _containers.RepeatedCompositeFieldContainer[Holding]
    agree: bytes
    varies: _containers.ScalarMap[str, str]
    def __init__(self, major: _Optional[int] = ..., minor: _Optional[int] = ..., peer: _Optional[str] = ..., boot: _Optional[int] = ..., address: _Optional[str] = ..., run: _Optional[bytes] = ..., about: _Optional[_Mapping[str, str]] = ..., link: _Optional[_Union[Link, _Mapping]] = ..., known: _Optional[str] = ..., known_boot: _Optional[int] = ..., refusal: _Optional[str] = ..., text: _Optional[str] = ..., news: _Optional[bool] = ..., returned: _Optional[_Union[Signed, _Mapping]] = ..., refound: _Optional[_Union[Signed, _Mapping]] = ..., holds: _Optional[_Iterable[_Union[Holding, _Mapping]]] = ..., agree: _Optional[bytes] = ..., varies: _Optional[_Mapping[str, str]] = ...) -> None: ...

class News(_message.Message):
    __slots__ = ("members", "records", "have")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[Signed]
    records: _containers.RepeatedCompositeFieldContainer[Signed]
    have: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, members: _Optional[_Iterable[_Union[Signed, _Mapping]]] = ..., records: _Optional[_Iterable[_Union[Signed, _Mapping]]] = ..., have: _Optional[_Iterable[int]] = ...) -> None: ...

class Piece(_message.Message):
    __slots__ = ("envelope", "data", "progress")
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    envelope: bytes
    data: bytes
    progress: Signed
    def __init__(self, envelope: _Optional[bytes] = ..., data: _Optional[bytes] = ..., progress: _Optional[_Union[Signed, _Mapping]] = ...) -> None: ...

class Look(_message.Message):
    __slots__ = ("life", "after")
    LIFE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    life: int
    after: int
    def __init__(self, life: _Optional[int] = ..., after: _Optional[int] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...
