# SPDX-License-Identifier: Apache-2.0
"""The schema registry, over Confluent's REST interface: schemas by id and by subject."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from ..errors import UserError

_TIMEOUT_S = 10.0


def without_logical_types(schema: Any) -> Any:
    """An Avro schema whose times are the integers of Avro's binary encoding; also without docs."""
    if isinstance(schema, list):
        return [without_logical_types(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: [f | {"type": without_logical_types(f["type"])} for f in value]
        if key == "fields"
        else without_logical_types(value)
        if key in ("type", "items", "values")
        else value
        for key, value in schema.items()
        if key not in ("logicalType", "doc")
    }


# By urllib: the client in confluent-kafka needs five more packages (httpx2, authlib, attrs, cachetools, certifi) for
# two requests.


class Registry:
    """One registry. Schemas never change under their id, so that each is requested once.

    url: as the agent's registry.urls, user:password@ in it or apart as auth "user:password". patience_s: how
    long what may pass (no connection, an answer of 5xx) is tried again.
    """

    def __init__(self, url: str, auth: str | None = None, patience_s: float = 0.0) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            host = parts.hostname
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https"):
            raise UserError(f"--registry {url}: is not an http or https URL", "as in --registry http://registry:8081")
        if parts.username is not None:
            auth = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        self.auth = auth
        self.url = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")
        """Without the password, for messages"""
        self._patience_s = patience_s
        self._by_id: dict[int, str | None] = {}

    def text(self, schema_id: int) -> str | None:
        """The Avro schema of an id; None where the registry has none of that id or it is not Avro."""
        if schema_id not in self._by_id:
            answer = self._get(f"/schemas/ids/{schema_id}")
            is_avro = answer is not None and answer.get("schemaType", "AVRO") == "AVRO"
            self._by_id[schema_id] = answer["schema"] if answer is not None and is_avro else None
        return self._by_id[schema_id]

    def schema(self, schema_id: int) -> dict[str, Any] | None:
        """The same as JSON."""
        text = self.text(schema_id)
        return None if text is None else json.loads(text)

    def forget_unknown(self) -> None:
        """Asks again for ids that the registry did not know, for jobs that live longer than that may last."""
        self._by_id = {number: text for number, text in self._by_id.items() if text is not None}

    def latest(self, subject: str) -> dict[str, Any] | None:
        """The newest schema of a subject; None where the registry does not know the subject."""
        answer = self._get(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/latest")
        if answer is None:
            return None
        found: dict[str, Any] = json.loads(answer["schema"])
        return found

    def check(self) -> None:
        """UserError where no registry answers at its URL."""
        self._get("/subjects")

    def _get(self, path: str) -> Any:
        """An answer; None for 404."""
        request = urllib.request.Request(self.url + path, headers={"Accept": "application/vnd.schemaregistry.v1+json"})
        if self.auth:
            request.add_header("Authorization", "Basic " + base64.b64encode(self.auth.encode()).decode())
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
                    return json.load(response)
            except urllib.error.HTTPError as e:
                if e.code == 404 and path != "/subjects":
                    return None
                if e.code < 500:
                    hint = (
                        "give a user and password: http://USER:PASSWORD@…"
                        if e.code in (401, 403)
                        else "check --registry"
                    )
                    raise UserError(f"the registry {self.url} answers {e.code} {e.reason} to GET {path}", hint) from e
                trouble: Exception = e
            except ValueError as e:
                raise UserError(f"{self.url}{path}: is not the answer of a schema registry", "check --registry") from e
            except OSError as e:
                trouble = e
            if time.monotonic() >= deadline:
                why = getattr(trouble, "reason", trouble)
                raise UserError(f"the registry {self.url} does not answer: {why}", "check --registry") from trouble
            time.sleep(1.0)
