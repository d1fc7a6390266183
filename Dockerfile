# The suite for the CPU; the container trains on handwritten digits:
#   docker build -t resnet-suite . && docker run --rm resnet-suite
# Other commands follow the image's name:
#   docker run --rm -v /data/imagenet:/data/imagenet resnet-suite ./runner -n 1 -b 32 --workspace /data/imagenet/run
FROM python:3.11-slim

# libgomp1: MindSpore's thread library, which the slim image lacks
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /suite
COPY requirements.txt requirements-demo.txt ./
RUN pip install --no-cache-dir --requirement requirements.txt --requirement requirements-demo.txt
COPY . .

CMD ["make", "demo", "PY=python3"]
