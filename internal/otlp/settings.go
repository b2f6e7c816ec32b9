// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Settings configures an Exporter.
type Settings struct {
	// Endpoint is the URL to which traces are sent.
	Endpoint string
	Headers  map[string]string
	Timeout  time.Duration
	Gzip     bool
	TLS      *tls.Config
}

// defaultTimeout is the default timeout that the OpenTelemetry specification defines.
const defaultTimeout = 10 * time.Second

// FromEnvironment reads the standard OpenTelemetry environment variables for the export of traces. It returns nil if
// they contain no endpoint or disable traces. A variable for traces, such as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, takes
// precedence over the variable for all signals, such as OTEL_EXPORTER_OTLP_ENDPOINT. FromEnvironment returns an error
// if a value is invalid or not supported. Errors contain no header values.
func FromEnvironment(env func(string) (string, bool)) (*Settings, error) {
	get := func(name string) string {
		value, _ := env(name)
		return strings.TrimSpace(value)
	}
	of := func(name string) string {
		return cmp.Or(get("OTEL_EXPORTER_OTLP_TRACES_"+name), get("OTEL_EXPORTER_OTLP_"+name))
	}
	endpoint := get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base := get("OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint == "" && base != "" {
		endpoint = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	exporter := cmp.Or(get("OTEL_TRACES_EXPORTER"), "otlp")
	switch {
	case endpoint == "", exporter == "none", strings.EqualFold(get("OTEL_SDK_DISABLED"), "true"):
		return nil, nil
	case exporter != "otlp":
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER %q: want otlp or none", exporter)
	}
	switch protocol := of("PROTOCOL"); protocol {
	case "", "http/json", "http/protobuf":
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %q: only OTLP over HTTP is supported", protocol)
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: want a URL with http or https")
	}
	s := &Settings{Endpoint: endpoint, Timeout: defaultTimeout, Gzip: of("COMPRESSION") == "gzip", Headers: map[string]string{}}
	if text := of("TIMEOUT"); text != "" {
		millis, err := strconv.Atoi(text)
		if err != nil || millis <= 0 {
			return nil, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT: want a positive number of milliseconds")
		}
		s.Timeout = time.Duration(millis) * time.Millisecond
	}
	if err := s.readHeaders(of("HEADERS")); err != nil {
		return nil, err
	}
	return s, s.readTLS(of("CERTIFICATE"), of("CLIENT_CERTIFICATE"), of("CLIENT_KEY"))
}

// readHeaders reads headers in the form "key=value,key=value". The values are URL-encoded.
func (s *Settings) readHeaders(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(pair), "=")
		if key == "" && !found {
			continue
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !found || strings.TrimSpace(key) == "" || strings.ContainsAny(value, "\r\n") {
			return errors.New("OTEL_EXPORTER_OTLP_HEADERS: want key=value pairs, separated by commas")
		}
		s.Headers[strings.TrimSpace(key)] = value
	}
	return nil
}

// readTLS reads the files with the CA certificate of the collector, and with the client certificate and key of this
// program.
func (s *Settings) readTLS(ca, cert, key string) error {
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca) //nolint:gosec // the operator names the file
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		s.TLS.RootCAs = x509.NewCertPool()
		if !s.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE: has no certificate")
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		s.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
