// SPDX-License-Identifier: Apache-2.0

// Package localregistry serves a registry on loopback for builds that publish nothing.
package localregistry

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Base is the base image in the registry, in the repository BaseRepository. The image is empty, and exists for linux/amd64
// and linux/arm64.
const (
	BaseRepository = "base"
	Base           = BaseRepository + ":1"
)

// Serve starts a registry that contains the image [Base]. It returns the address of the registry and a function that
// stops it.
func Serve() (address string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // returns an error when stop is called
	}()
	stop = func() {
		_ = server.Close() // the process is about to end
		<-ended
	}
	address = listener.Addr().String()
	if err := pushBase(address + "/" + Base); err != nil {
		stop()
		return "", nil, fmt.Errorf("push the base image: %w", err)
	}
	return address, stop, nil
}

// pushBase pushes an empty image for the platforms of the images.
func pushBase(ref string) error {
	base := v1.ImageIndex(empty.Index)
	for _, arch := range []string{"amd64", "arm64"} {
		platform := v1.Platform{OS: "linux", Architecture: arch}
		image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: platform.OS, Architecture: platform.Architecture})
		if err != nil {
			return err
		}
		base = mutate.AppendManifests(base, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return err
	}
	return remote.WriteIndex(parsed, base)
}
