// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

// mustMarshal encodes a value that can be encoded.
func mustMarshal(value any) []byte {
	out, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return out
}

// steppedClock is a clock that moves only by step.
type steppedClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *steppedClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Now returns the time.
func (c *steppedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since returns the time since t.
func (c *steppedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// countBlobs returns the number of requests for blobs.
func countBlobs(requests []recorded) int {
	count := 0
	for _, r := range requests {
		if strings.Contains(r.path, "/blobs/") {
			count++
		}
	}
	return count
}

func TestCache(t *testing.T) {
	content := newStore()
	content.push(t, "test", "1.0.0", layer{helmLayer, testChart})

	t.Run("downloads an archive once for many items [Ex31]", func(t *testing.T) {
		reg := newServer(t, true, content)
		events := map[chart.Event]int{}
		o := trust(reg)
		var mu sync.Mutex
		o.Observe = func(e chart.Event) {
			mu.Lock()
			defer mu.Unlock()
			events[e]++
		}
		s := newSources(t, o)
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				r := ociRequest(reg.host() + "/test:1.0.0")
				id, err := s.Resolve(t.Context(), r)
				if err == nil {
					_, err = s.Fetch(t.Context(), r, id)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := countBlobs(reg.take()); got != 1 || events[chart.Download] != 1 || events[chart.CacheHit] != 9 {
			t.Errorf("the registry received %d requests for the archive, and the events are %v; want 1 download and 9 hits", got, events)
		}
	})

	t.Run("gives an archive only to items whose own credentials resolve it [Ex31]", func(t *testing.T) {
		reg := newServer(t, true, requireBasic(map[string]string{"/v2/": password}, content))
		s := newSources(t, trust(reg))
		r := ociRequest(reg.host() + "/test:1.0.0")
		r.Context, r.Secrets = withPullSecrets("pull"), secrets{"pull": {corev1.DockerConfigJsonKey: dockerConfig(map[string]string{reg.host(): password})}}
		id := mustResolve(t, s, r)
		mustFetch(t, s, r)
		r.Context = nil
		fails(t, s, r, "ref", false, "401")
		if _, err := s.Fetch(t.Context(), r, chart.Identity{Digest: id.Digest}); err == nil {
			t.Error("the digest alone gives access to the archive")
		}
	})

	t.Run("gives no archive to a server that only names its digest [Ex31]", func(t *testing.T) {
		reg := newServer(t, true, content)
		static := newFiles()
		static.set("/index.yaml", index(entry("1.0.0", testDigest, "missing.tgz")))
		hostile := newServer(t, true, static)
		s := newSources(t, trust(reg, hostile))
		mustFetch(t, s, ociRequest(reg.host()+"/test:1.0.0"))
		fails(t, s, repoRequest(hostile.URL, "1.0.0"), "helmChartRepo", false, "404")
	})

	t.Run("downloads again after another item's download has failed [Ex31]", func(t *testing.T) {
		var mu sync.Mutex
		failed := false
		reg := newServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			first := strings.Contains(r.URL.Path, "/blobs/") && !failed
			failed = failed || first
			mu.Unlock()
			if first {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			content.ServeHTTP(w, r)
		}))
		s := newSources(t, trust(reg))
		fails(t, s, ociRequest(reg.host()+"/test:1.0.0"), "ref", false, "500")
		mustFetch(t, s, ociRequest(reg.host()+"/test:1.0.0"))
	})

	t.Run("limits the size of the cache [Ex31]", func(t *testing.T) {
		content.push(t, "other", "1.0.0", layer{helmLayer, otherChart})
		reg := newServer(t, true, content)
		o := trust(reg)
		o.CacheBytes = int64(len(testChart)+len(otherChart)) - 1
		s := newSources(t, o)
		for _, name := range []string{"test", "other", "other", "test"} {
			mustFetch(t, s, ociRequest(reg.host()+"/"+name+":1.0.0"))
		}
		if got := countBlobs(reg.take()); got != 3 {
			t.Errorf("the registry received %d requests for archives, want 3", got)
		}
	})
}

func TestChanges(t *testing.T) {
	t.Run("detects a moved tag [Ex32]", func(t *testing.T) {
		content := newStore()
		reg := newServer(t, true, content)
		s := newSources(t, trust(reg))
		r := ociRequest(reg.host() + "/test:1.0.0")
		pinned := string(content.push(t, "test", "1.0.0", layer{helmLayer, testChart}))
		old := mustResolve(t, s, r)
		content.push(t, "test", "1.0.0", layer{helmLayer, otherChart})
		if got := mustFetch(t, s, r); got.Digest != otherDigest || old.Digest != testDigest {
			t.Errorf("the digests are %s and %s, want %s and %s", old.Digest, got.Digest, testDigest, otherDigest)
		}
		mustFetch(t, s, ociRequest(reg.host()+"/test@"+pinned))
		fails(t, s, ociRequest(reg.host()+"/test:1.0.0@"+pinned), "ref", true, "the tag has the digest")
		if _, err := s.Fetch(t.Context(), r, chart.Identity{Digest: testDigest}); err == nil {
			t.Error("Fetch returns an archive with another digest than the requested one")
		}
	})

	t.Run("detects a changed version and a changed archive of a repository [Ex32]", func(t *testing.T) {
		static := newFiles()
		repo := newServer(t, true, static)
		s := newSources(t, trust(repo))
		static.set("/a.tgz", testChart)
		for _, test := range []struct{ content, want string }{
			{entry("1.0.0", testDigest, "a.tgz"), testDigest},
			{entry("1.0.0", testDigest, "a.tgz") + entry("1.1.0", "", "a.tgz") + entry("1.0.1", otherDigest, "b.tgz"), testDigest},
		} {
			static.set("/index.yaml", index(test.content))
			if got := mustFetch(t, s, repoRequest(repo.URL, "^1")); got.Digest != test.want {
				t.Errorf("the digest is %s, want %s", got.Digest, test.want)
			}
		}
		static.set("/a.tgz", otherChart)
		static.set("/c.tgz", otherChart)
		if got := mustFetch(t, s, repoRequest(repo.URL, "^1")); got.Digest != otherDigest {
			t.Errorf("the digest is %s, want %s", got.Digest, otherDigest)
		}
		static.set("/index.yaml", index(entry("2.0.0", testDigest, "c.tgz"), entry("3.0.0", "md5:1", "a.tgz")))
		fails(t, s, repoRequest(repo.URL, "2.0.0"), "helmChartRepo", true, "the archive has the digest "+otherDigest+", want "+testDigest)
		fails(t, s, repoRequest(repo.URL, "3.0.0"), "helmChartRepo", true, "invalid digest")
		fails(t, s, repoRequest(repo.URL, "4.0.0"), "helmChartRepo", false, "no version 4.0.0 of the chart test")
	})
}
