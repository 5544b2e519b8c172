"""The envelopes of the extension protocol: a request and a response for each method, and the schema of all."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from boxeval.spec.base import Record
from boxeval.spec.extension import (
    DescribeParams,
    DescribeResult,
    DiscoveryProtocol,
    ErrorBody,
    EvaluateParams,
    EvaluateResult,
    ExtensionProtocol,
    MessageId,
    Method,
    PrepareParams,
    PrepareResult,
    ResolveParams,
    ResolveResult,
)


class Failure(Record):
    """A response with an error."""

    protocol: DiscoveryProtocol | ExtensionProtocol
    id: MessageId
    method: Method = Field(strict=False)
    error: ErrorBody


class DescribeRequest(Record):
    """The first request to an extension."""

    protocol: DiscoveryProtocol
    id: MessageId
    method: Literal["describe"]
    params: DescribeParams


class ResolveRequest(Record):
    """Asks for cases."""

    protocol: ExtensionProtocol
    id: MessageId
    method: Literal["resolve"]
    params: ResolveParams


class PrepareRequest(Record):
    """Asks what a case needs."""

    protocol: ExtensionProtocol
    id: MessageId
    method: Literal["prepare"]
    params: PrepareParams


class EvaluateRequest(Record):
    """Asks for a judgement."""

    protocol: ExtensionProtocol
    id: MessageId
    method: Literal["evaluate"]
    params: EvaluateParams


class DescribeAnswer(Record):
    """A response to `describe`."""

    protocol: DiscoveryProtocol
    id: MessageId
    method: Literal["describe"]
    result: DescribeResult


class ResolveAnswer(Record):
    """A response to `resolve`."""

    protocol: ExtensionProtocol
    id: MessageId
    method: Literal["resolve"]
    result: ResolveResult


class PrepareAnswer(Record):
    """A response to `prepare`."""

    protocol: ExtensionProtocol
    id: MessageId
    method: Literal["prepare"]
    result: PrepareResult


class EvaluateAnswer(Record):
    """A response to `evaluate`."""

    protocol: ExtensionProtocol
    id: MessageId
    method: Literal["evaluate"]
    result: EvaluateResult


Request = DescribeRequest | ResolveRequest | PrepareRequest | EvaluateRequest
Answer = DescribeAnswer | ResolveAnswer | PrepareAnswer | EvaluateAnswer
REQUESTS: dict[Method, type[Request]] = {
    Method.DESCRIBE: DescribeRequest,
    Method.RESOLVE: ResolveRequest,
    Method.PREPARE: PrepareRequest,
    Method.EVALUATE: EvaluateRequest,
}
ANSWERS: dict[Method, type[Answer]] = {
    Method.DESCRIBE: DescribeAnswer,
    Method.RESOLVE: ResolveAnswer,
    Method.PREPARE: PrepareAnswer,
    Method.EVALUATE: EvaluateAnswer,
}
Result = DescribeResult | ResolveResult | PrepareResult | EvaluateResult
METHODS: dict[type[Result], Method] = {
    DescribeResult: Method.DESCRIBE,
    ResolveResult: Method.RESOLVE,
    PrepareResult: Method.PREPARE,
    EvaluateResult: Method.EVALUATE,
}
"""By what they give."""


def extension_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of all messages; `$defs` has each by its name."""
    schema = TypeAdapter(Request | Answer | Failure).json_schema(by_alias=True, mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "boxeval extension protocol, version 1: a request or a response",
        **schema,
    }
