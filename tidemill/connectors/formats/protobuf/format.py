"""The ``protobuf`` format: messages of a queue that are Protocol Buffers.

Flink takes the message's type from a Java class; Tidemill takes it from a file of descriptors.
"""

from __future__ import annotations

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import (
    Decoder,
    DecodeRequest,
    Encoder,
    EncodeRequest,
    Format,
    Framing,
    MessageDecoder,
)
from tidemill.connectors.formats.protobuf.descriptors import PROTOC, MessageType, check_columns
from tidemill.connectors.formats.protobuf.reader import ProtobufMessages
from tidemill.connectors.formats.protobuf.writer import ProtobufEncoder
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field

_OPTIONS = (
    ConnectorOption(
        key="message-class-name",
        required=True,
        doc="The message's full name in its .proto file: package.Message. Flink: the name of a Java class.",
    ),
    ConnectorOption(
        key="descriptor-file",
        doc="Tidemill's own. Path or URI of the message's descriptors, as protoc --include_imports"
        " --descriptor_set_out writes them. Required.",
    ),
    ConnectorOption(
        key="read-default-values",
        kind="bool",
        default="false",
        doc="A field that a message lacks is the field's default, not NULL.",
    ),
    ConnectorOption(
        key="write-null-string-literal",
        default="",
        doc="Text that a sink writes for NULL in arrays and maps of text.",
    ),
    ConnectorOption(
        key="ignore-parse-errors", kind="bool", default="false", doc="Skips messages that do not fit."
    ),
)


class ProtobufFormat(Format):
    identifier = "protobuf"
    options: tuple[ConnectorOption, ...] = _OPTIONS
    extension = "binpb"

    def framing(self, options: OptionValues) -> Framing:
        return Framing.MESSAGES

    def decoder(self, request: DecodeRequest) -> Decoder:
        raise NotSupportedError("Files of 'protobuf'")

    def message_decoder(self, request: DecodeRequest) -> MessageDecoder:
        options = OptionValues(_OPTIONS, request.options, "protobuf.")
        return ProtobufMessages(
            message=_checked_type(options, request.columns),
            wanted=request.wanted,
            defaults=options["read-default-values"],
            skips=options["ignore-parse-errors"],
        )

    def encoder(self, request: EncodeRequest) -> Encoder:
        options = OptionValues(_OPTIONS, request.options, "protobuf.")
        return ProtobufEncoder(
            message=_checked_type(options, request.fields),
            fields=request.fields,
            null_text=options["write-null-string-literal"],
        )


def _checked_type(options: OptionValues, columns: tuple[Field, ...]) -> MessageType:
    message_type = _message_type(options)
    check_columns(message_type.descriptor(), columns)
    return message_type


def _message_type(options: OptionValues) -> MessageType:
    path = options["descriptor-file"]
    if not path:
        raise NotSupportedError(
            "Java classes of 'protobuf.message-class-name' are not supported: the format needs"
            " 'protobuf.descriptor-file'.",
            hint=f"Make the file with {PROTOC}",
        )
    try:
        return MessageType.of(Storage(path).read_bytes(""), options["message-class-name"])
    except OSError as e:
        raise ValidationError(f"'protobuf.descriptor-file': '{path}' cannot be read: {e}") from None
    except ValidationError as e:
        raise ValidationError(
            f"'protobuf.descriptor-file' = '{path}': {e.message}", expected=e.expected, hint=e.hint
        ) from None


FORMAT = ProtobufFormat()
