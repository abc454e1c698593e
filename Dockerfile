# Build: the engine is linked statically, so only libstdc++ is needed to run.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go build -trimpath -ldflags "-s -w" -o /out/skipprd ./cmd/skipprd

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libstdc++6 tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --create-home --home-dir /var/lib/skipprd skipprd
COPY --from=build /out/skipprd /usr/local/bin/skipprd
USER skipprd
ENV DATA_DIR=/var/lib/skipprd/data LISTEN=0.0.0.0:5432 HTTP=0.0.0.0:8080
VOLUME /var/lib/skipprd
EXPOSE 5432 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["skipprd", "healthcheck"]
# POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE is needed: clients come from other hosts.
ENTRYPOINT ["skipprd"]
CMD ["serve"]
