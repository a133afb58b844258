"""The answer to a request that fails as a whole, for each API of the controller. The one place that makes them."""

from __future__ import annotations

from typing import Any

from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey, response_class
from tidelog.wire.uuids import ZERO_UUID


def error_response(api_key: int, request: Any, code: ErrorCode, message: str = "") -> Any:
    """What a client is told when nothing of its request was done.

    Where a response has no place for one error, every item of the request gets it.
    """
    text = message or None
    response: Any = response_class(api_key)()
    match api_key:
        case ApiKey.CREATE_TOPICS:
            from tidelog.wire.messages.create_topics import CreatableTopicResult

            response.topics = [
                CreatableTopicResult(name=topic.name, error_code=code, error_message=text, configs=None)
                for topic in request.topics
            ]
        case ApiKey.DELETE_TOPICS:
            from tidelog.wire.messages.delete_topics import DeletableTopicResult

            named = [(name, ZERO_UUID) for name in request.topic_names]
            named += [(topic.name, topic.topic_id) for topic in request.topics]
            response.responses = [
                DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=text)
                for name, topic_id in named
            ]
        case ApiKey.CREATE_PARTITIONS:
            from tidelog.wire.messages.create_partitions import CreatePartitionsTopicResult

            response.results = [
                CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=text)
                for topic in request.topics
            ]
        case ApiKey.INCREMENTAL_ALTER_CONFIGS | ApiKey.ALTER_CONFIGS:
            response.responses = _config_results(api_key, request, code, text)
        case _:
            response.error_code = code
            if hasattr(response, "error_message"):
                response.error_message = text
    return response


def _config_results(api_key: int, request: Any, code: ErrorCode, text: str | None) -> list[Any]:
    from tidelog.wire.messages import alter_configs, incremental_alter_configs

    result: Any = (
        alter_configs.AlterConfigsResourceResponse
        if api_key == ApiKey.ALTER_CONFIGS
        else incremental_alter_configs.AlterConfigsResourceResponse
    )
    return [
        result(error_code=code, error_message=text, resource_type=each.resource_type, resource_name=each.resource_name)
        for each in request.resources
    ]
