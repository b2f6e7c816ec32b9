// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// newBehaviour returns a Behaviour that responds to every request with `handle`, and never calls the next handler.
func newBehaviour(handle http.HandlerFunc) Behaviour {
	return func(http.Handler) http.Handler { return handle }
}

// LargeObject responds with a large ConfigMap of about size bytes, or with a list that contains this ConfigMap.
func LargeObject(size int) Behaviour {
	return newBehaviour(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		before, after := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"big","namespace":"default"},"data":{"a":"`, `"}}`
		if IsList(r) {
			before, after = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`+before, after+`]}`
		}
		_, _ = io.WriteString(w, before)
		writeRepeated(w, r, "x", size)
		_, _ = io.WriteString(w, after)
	})
}

// ManyValues responds with an object that contains the given number of small values. The decoded values take much more
// memory than their text.
func ManyValues(count int) Behaviour {
	return newBehaviour(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"many","namespace":"default"},"x":[{}`)
		writeRepeated(w, r, `,{"":0}`, 7*count)
		_, _ = io.WriteString(w, `]}`)
	})
}

// DeepObject responds with an object of the given nesting depth.
func DeepObject(depth int) Behaviour {
	return newBehaviour(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"deep","namespace":"default"},"x":`+
			strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`)
	})
}

// writeRepeated writes `piece` again and again. It returns when it has written `size` bytes or the client has
// disconnected.
func writeRepeated(w io.Writer, r *http.Request, piece string, size int) {
	block := strings.Repeat(piece, max(1, 64<<10/len(piece)))
	for size > 0 && r.Context().Err() == nil {
		text := block
		if size < len(block) {
			text = strings.Repeat(piece, size/len(piece)+1)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		size -= len(text)
	}
}

// Gzip compresses the responses of the next handler. In the arguments of New or When, put Gzip before the behaviours
// whose responses it compresses.
func Gzip() Behaviour {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			next.ServeHTTP(&gzipWriter{ResponseWriter: w, zip: zip}, r)
			_ = zip.Close()
		})
	}
}

type gzipWriter struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (z *gzipWriter) Write(p []byte) (int, error) { return z.zip.Write(p) }

// EndlessPages responds to each list request with a page of objects and a continue token for another page. A page
// contains the given number of objects of about size bytes each.
func EndlessPages(objects, size int) Behaviour {
	text := strings.Repeat("x", size)
	return newBehaviour(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		var items strings.Builder
		for i := range objects {
			if i > 0 {
				items.WriteByte(',')
			}
			fmt.Fprintf(&items, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"cm-%d-%d","namespace":"default","uid":"%d-%d","resourceVersion":"1"},"data":{"a":"%s"}}`,
				page, i, page, i, text)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"%d"},"items":[%s]}`, page+1, items.String())
	})
}

// SendSlowly sends the headers immediately and then the response byte by byte, with a pause between the bytes.
func SendSlowly(pause time.Duration) Behaviour {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			full := httptest.NewRecorder()
			next.ServeHTTP(full, r)
			maps.Copy(w.Header(), full.Header())
			w.WriteHeader(full.Code)
			for _, b := range full.Body.Bytes() {
				if _, err := w.Write([]byte{b}); err != nil || !flushAndWait(w, r, pause) {
					return
				}
			}
		})
	}
}

// flushAndWait flushes the response writer, and then waits for the pause. It reports whether the client is still
// connected.
func flushAndWait(w http.ResponseWriter, r *http.Request, pause time.Duration) bool {
	if http.NewResponseController(w).Flush() != nil {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-ServerClosed(r):
	}
	return false
}

// NoResponse accepts requests and never responds.
func NoResponse() Behaviour {
	return newBehaviour(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ServerClosed(r):
		}
	})
}

// WatchExpired responds to a watch request with a single event. The event is an error with the code 410 (Gone).
func WatchExpired() Behaviour {
	return newBehaviour(func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusOK, map[string]any{"type": "ERROR", "object": status(http.StatusGone, "Expired", "too old resource version")})
	})
}

// EmptyWatch ends each watch immediately, without an event.
func EmptyWatch() Behaviour {
	return newBehaviour(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
	})
}

// WatchEndlessly responds to a watch request with an endless sequence of new objects, as fast as the client reads them.
func WatchEndlessly() Behaviour {
	return newBehaviour(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var block bytes.Buffer
		kind := `"kind":"ConfigMap","apiVersion":"v1"`
		if isMetadataRequest(r) {
			kind = `"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"`
		}
		for i := 0; r.Context().Err() == nil; i++ {
			fmt.Fprintf(&block, `{"type":"ADDED","object":{`+kind+`,"metadata":{"name":"cm-%d","namespace":"default","uid":"u%d","resourceVersion":"%d"}}}`+"\n", i, i, i+1)
			if block.Len() > 32<<10 {
				if _, err := block.WriteTo(w); err != nil {
					return
				}
			}
		}
	})
}

// AddGroups adds the given number of API groups to the discovery responses. If aggregated is true, the server supports
// aggregated discovery. Otherwise a client needs a separate request for each group.
func AddGroups(count int, aggregated bool) Behaviour {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			parts := splitPath(r.URL.Path)
			switch {
			case len(parts) == 1 && parts[0] == "apis":
				writeGroups(w, count, aggregated)
			case len(parts) == 3 && parts[0] == "apis" && strings.HasPrefix(parts[1], "g"):
				WriteJSON(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "groupVersion": parts[1] + "/v1", "resources": []any{}})
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}

func writeGroups(w http.ResponseWriter, count int, aggregated bool) {
	format, list := `{"name":"g%d.example.org","versions":[{"groupVersion":"g%[1]d.example.org/v1","version":"v1"}]}`, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`
	w.Header().Set("Content-Type", "application/json")
	if aggregated {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		list = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[`
		format = `{"metadata":{"name":"g%d.example.org"},"versions":[{"version":"v1","freshness":"Current","resources":[]}]}`
	}
	_, _ = io.WriteString(w, list)
	for i := range count {
		if i > 0 {
			_, _ = io.WriteString(w, ",")
		}
		fmt.Fprintf(w, format, i)
	}
	_, _ = io.WriteString(w, "]}")
}

// Redirect responds with a redirect to location.
func Redirect(location string) Behaviour {
	return newBehaviour(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, location, http.StatusTemporaryRedirect)
	})
}

// ContentType changes the content type of the responses.
func ContentType(contentType string) Behaviour {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			full := httptest.NewRecorder()
			next.ServeHTTP(full, r)
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(full.Code)
			_, _ = w.Write(full.Body.Bytes())
		})
	}
}

// Rewrite changes the bodies of the responses.
func Rewrite(change func(body []byte) []byte) Behaviour {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			full := httptest.NewRecorder()
			next.ServeHTTP(full, r)
			maps.Copy(w.Header(), full.Header())
			w.WriteHeader(full.Code)
			_, _ = w.Write(change(full.Body.Bytes()))
		})
	}
}
