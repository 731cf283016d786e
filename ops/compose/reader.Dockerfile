# SPDX-License-Identifier: Apache-2.0
# Reads Kafka for docker-compose.yml: the tests' own consumer, which shares no code with the agent.
ARG PYTHON=python:3.11.16-slim-bookworm@sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84
FROM ${PYTHON}
COPY tests/requirements.txt /reader/
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: -r /reader/requirements.txt
COPY tests/integration/kafka_check.py tests/integration/kafka_rules.py ops/compose/registry_rules.py /reader/
COPY schemas/avro/ /reader/schemas/
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 SLUICE_SCHEMAS=/reader/schemas
USER nobody
ENTRYPOINT ["python3"]
