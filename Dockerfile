# SPDX-License-Identifier: Apache-2.0
#
# Untested: no test builds this file. `make image` makes the images that are tested.
#
#   docker build --build-arg PROGRAM=manifest-deployer .
FROM golang:1.26 AS build
ARG PROGRAM=manifest-deployer
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /program ./cmd/${PROGRAM}

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /program /program
USER 65532:65532
ENTRYPOINT ["/program"]
