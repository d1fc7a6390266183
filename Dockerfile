# The suite in a container. One file for CPU, GPU and Ascend: what it is based on is an argument (docs/docker.md).
#   docker build -t resnet-suite . && docker run --rm resnet-suite       trains on handwritten digits
# Other commands follow the image's name:
#   docker run --rm -v /data/imagenet:/data/imagenet resnet-suite ./runner --help
ARG BASE=python:3.11-slim
FROM ${BASE}

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
USER 0

# What the base image lacks. libgomp1: MindSpore's thread library.
ARG PACKAGES="libgomp1 make"
# hadolint ignore=DL3008,SC2086
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ${PACKAGES} \
    && rm -rf /var/lib/apt/lists/*

# Training needs no rights. 1000 is who owns the devices where Huawei's driver is installed, and ModelArts' user.
ARG UID=1000
RUN useradd --create-home --non-unique --uid "${UID}" suite \
    && install --directory --owner suite /suite
WORKDIR /suite

# "keep": the base image has a MindSpore of its own.
ARG MINDSPORE=install
COPY requirements.txt requirements-demo.txt ./
RUN if [ "${MINDSPORE}" = keep ]; then sed -i '/^mindspore\b/d' requirements.txt; fi \
    && python3 -m pip install --no-cache-dir --requirement requirements.txt --requirement requirements-demo.txt

COPY --chown=suite . .
USER ${UID}

# ONEDNN_MAX_CPU_ISA is not set here: the suite looks at the processor that it runs on, and this one may be another.
CMD ["make", "demo", "PY=python3"]
