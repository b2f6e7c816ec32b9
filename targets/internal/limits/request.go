// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"mime"
	"net/http"
	"strings"
)

// content is what a response contains: a list, an object or discovery data. Each has its own limit.
type content struct {
	metric, what, option string
	limit                int64
}

// getContent returns what the response to a request contains.
func (t *Target) getContent(req *http.Request) content {
	path, _ := strings.CutPrefix(req.URL.Path, t.Path)
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	skip := 3
	switch {
	case len(parts) > 0 && parts[0] == "api":
		skip = 2
	case len(parts) == 0 || parts[0] != "apis":
		skip = len(parts)
	}
	if len(parts) <= skip {
		return content{"discovery", "a response about kinds", "Discovery", t.Limits.Discovery}
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	isList := len(parts) == 1 && (req.Method == http.MethodGet || req.Method == http.MethodDelete)
	if isList {
		return content{"page", "a page of a list", "Page", t.Limits.Page}
	}
	return content{"object", "one object", "Object", t.Limits.Object}
}

const (
	jsonFormat     = "application/json"
	protobufFormat = "application/vnd.kubernetes.protobuf"
)

// filterFormats removes from the Accept header of a request the formats whose cost of decoding cannot be estimated.
// It keeps ScanJSON, and Protobuf if the request watches the metadata of objects.
func filterFormats(req *http.Request) {
	var keep []string
	for one := range strings.SplitSeq(req.Header.Get("Accept"), ",") {
		format, parameters, err := mime.ParseMediaType(one)
		isMetadata := format == protobufFormat && parameters["as"] == "PartialObjectMetadata" && isWatch(req)
		if err != nil || !isMetadata && (strings.Contains(format, "protobuf") || strings.Contains(format, "cbor")) {
			continue
		}
		keep = append(keep, strings.TrimSpace(one))
	}
	if len(keep) == 0 {
		keep = []string{jsonFormat}
	}
	req.Header.Set("Accept", strings.Join(keep, ","))
}

// getFormat returns the media type of a response. It returns an error if the request does not accept this type. Text is
// always allowed, because text, such as the log of a Pod, is not decoded. If the response has no valid media type,
// getFormat sets it to ScanJSON, because a client would otherwise assume that the response has the format of its
// requests.
func getFormat(req *http.Request, resp *http.Response) (string, error) {
	format, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		format = jsonFormat
		resp.Header.Set("Content-Type", format)
	}
	if format == jsonFormat || strings.HasPrefix(format, "text/") || strings.Contains(req.Header.Get("Accept"), format) {
		return format, nil
	}
	return "", newFormatError()
}

func newFormatError() error {
	return newValuesError("", "has a format that the request does not accept")
}
