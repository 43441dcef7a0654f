"""Results of batches of language models, as OpenAI and Anthropic write them.

A line of a batch has the number of the request, which names the instance, and the
message of the model or an error. Other services write the same lines as OpenAI.
"""

from .json_values import Json

Record = dict[str, Json]  # a parsed JSON object

INSTANCE_KEY = "custom_id"


def is_openai(record: Record) -> bool:
    """Return whether a record is a result of a batch of OpenAI.

    Parameters
    ----------
    record : dict
        The record.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_openai({"custom_id": "7", "response": None, "error": {"code": "expired"}})
    True
    """
    return {INSTANCE_KEY, "response", "error"} <= record.keys()


def is_anthropic(record: Record) -> bool:
    """Return whether a record is a result of a batch of Anthropic.

    Parameters
    ----------
    record : dict
        The record.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_anthropic({"custom_id": "7", "result": {"type": "expired"}})
    True
    """
    result = record.get("result")
    return INSTANCE_KEY in record and isinstance(result, dict) and "type" in result


def get_openai_answer(record: Record) -> Json:
    """Return the answer in a result of OpenAI.

    Parameters
    ----------
    record : dict
        The result of one request.

    Returns
    -------
    parsed JSON
        Text, the arguments of a function call, or None if the request failed.

    Examples
    --------
    >>> body = {"choices": [{"message": {"role": "assistant", "content": "law, war"}}]}
    >>> response = {"status_code": 200, "body": body}
    >>> get_openai_answer({"custom_id": "7", "response": response, "error": None})
    'law, war'
    """
    response = record["response"]
    if record["error"] or not response or response.get("status_code", 200) != 200:
        return None

    message = response["body"]["choices"][0]["message"]
    calls = message.get("tool_calls")
    if calls and not message.get("content"):
        return calls[0]["function"]["arguments"]
    return message.get("content")


def get_anthropic_answer(record: Record) -> Json:
    """Return the answer in a result of Anthropic.

    Parameters
    ----------
    record : dict
        The result of one request.

    Returns
    -------
    parsed JSON
        Text, the input of a tool, or None if the request failed.

    Examples
    --------
    >>> message = {"content": [{"type": "text", "text": "law, war"}]}
    >>> result = {"type": "succeeded", "message": message}
    >>> get_anthropic_answer({"custom_id": "7", "result": result})
    'law, war'
    """
    result = record["result"]
    if result["type"] != "succeeded":
        return None

    texts = []
    for part in result["message"]["content"]:
        if part["type"] == "tool_use":
            return part["input"]
        if part["type"] == "text":
            texts.append(part["text"])

    return "\n".join(texts)
