# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Towpath from the wheel that `make wheel` leaves in dist/:
#   make wheel && docker build -t towpath . && docker run --rm towpath expect all_reduce --machine dgx-h100
FROM debian:12-slim
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/towpath
COPY dist/towpath-*-cp311-cp311-*.whl /tmp/
# Kernels and the torch backend also need g++: docker build --build-arg PACKAGES=g++ ...
ARG PACKAGES=""
RUN if [ -n "$PACKAGES" ]; then apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends $PACKAGES && rm -rf /var/lib/apt/lists/*; fi \
 && /opt/towpath/bin/pip install --no-cache-dir /tmp/towpath-*.whl && rm /tmp/towpath-*.whl
RUN useradd --create-home towpath
USER towpath
WORKDIR /home/towpath
ENTRYPOINT ["/opt/towpath/bin/towpath"]
