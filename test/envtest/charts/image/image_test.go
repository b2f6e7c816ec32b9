// SPDX-License-Identifier: Apache-2.0

// Package image_test builds the images with `make image`, pushes them to a registry on loopback, and runs the programs
// in the images.
package image_test

import (
	"archive/tar"
	"cmp"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
	"github.com/deployerkit/deployerkit/test/envtest/charts/localregistry"
)

// platforms are the platforms of the images: the platform of this machine or, with `make test-ship`, all platforms of a
// release.
var platforms = strings.Split(cmp.Or(os.Getenv("DEPLOYERKIT_PLATFORMS"), "linux/"+runtime.GOARCH), ",")

// password is the password of the signing key.
const password = "secret"

// programs are the programs for which there are images.
var programs = []string{"helm-deployer", "manifest-deployer", "mock-deployer"}

// serve starts a registry that contains an empty base image, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	address, stop, err := localregistry.Serve()
	check(t, err)
	t.Cleanup(stop)
	return address
}

// build runs `make image` with the given base image. An image contains the name of its base image, so two builds can
// only be equal if they use the same base image.
func build(t *testing.T, address, base string) {
	t.Helper()
	run(t, "image", "REGISTRY="+address+"/x", "BASE="+base+"/"+localregistry.Base, "TAGS=v0.1.0,v0.152.0,v1.4.0",
		"PLATFORMS="+strings.Join(platforms, ","), "KOFLAGS=--insecure-registry")
}

// run runs make with the given arguments.
func run(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("make", args...)
	cmd.Dir = helm.Root()
	cmd.Env = append(os.Environ(), "GOWORK=off", "COSIGN_PASSWORD="+password)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestImages(t *testing.T) {
	address, second := serve(t), serve(t)
	build(t, address, address)
	for _, program := range programs {
		repository := address + "/x/" + program
		byPlatform := listImages(t, repository+":v0.152.0")
		t.Run(program+" exists under each of Landscaper's versions [O68]", func(t *testing.T) {
			if a, b := getDigest(t, repository+":v0.152.0"), getDigest(t, repository+":v1.4.0"); a != b {
				t.Errorf("%s is not %s", a, b)
			}
		})
		t.Run(program+" is one static binary for an ordinary user, with labels [O67]", func(t *testing.T) {
			for _, platform := range platforms {
				image := byPlatform[platform]
				if image == nil {
					t.Fatalf("there is none for %s", platform)
				}
				config, err := image.ConfigFile()
				check(t, err)
				if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/ko-app/" + program}) {
					t.Errorf("it runs %q as %s", config.Config.Entrypoint, config.Config.User)
				}
				for _, label := range []string{"title", "source", "revision", "licenses"} {
					if config.Config.Labels["org.opencontainers.image."+label] == "" {
						t.Errorf("it has no label %s", label)
					}
				}
				checkFiles(t, extractFiles(t, image), "ko-app/"+program, platform)
			}
		})
		t.Run(program+" has a bill of materials [O67]", func(t *testing.T) {
			for _, platform := range platforms {
				hash, err := byPlatform[platform].Digest()
				check(t, err)
				bill, err := remote.Image(parseReference(t, repository+":"+strings.Replace(hash.String(), ":", "-", 1)+".sbom"))
				check(t, err)
				layers, err := bill.Layers()
				check(t, err)
				content, err := layers[0].Uncompressed()
				check(t, err)
				text, err := io.ReadAll(content)
				check(t, err)
				if !strings.Contains(string(text), "spdxVersion") || !strings.Contains(string(text), "sigs.k8s.io/controller-runtime") {
					t.Errorf("it is %.200s", text)
				}
			}
		})
	}
	checkSignatures(t, address+"/x")
	build(t, second, address)
	t.Run("two builds have the same digest [O67]", func(t *testing.T) {
		for _, program := range programs {
			a, b := listDigests(t, address+"/x/"+program+":v1.4.0"), listDigests(t, second+"/x/"+program+":v1.4.0")
			if !slices.Equal(a, b) {
				t.Errorf("%s: %s is not %s", program, a, b)
			}
		}
	})
}

// checkSignatures builds the charts and component archives of a release, signs everything, and verifies the signatures
// with the code of cosign.
func checkSignatures(t *testing.T, registry string) {
	t.Helper()
	dir := t.TempDir()
	keys, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return []byte(password), nil })
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "cosign.key"), keys.PrivateBytes, 0o600))
	run(t, "chart", "component", "sign", "REGISTRY="+registry, "DIR="+dir, "KEY="+filepath.Join(dir, "cosign.key"))
	private, err := cosign.LoadPrivateKey(keys.PrivateBytes, []byte(password), nil)
	check(t, err)
	key := &cosign.CheckOpts{SigVerifier: private, IgnoreTlog: true, Offline: true, NewBundleFormat: true, ClaimVerifier: cosign.IntotoSubjectClaimVerifier}
	for _, program := range programs {
		for _, artifact := range []string{program + ":v0.1.0", program + ":v1.4.0", "charts/" + program + ":0.1.0"} {
			t.Run(artifact+" has a signature and its provenance [O70]", func(t *testing.T) {
				statements, _, err := cosign.VerifyImageAttestations(t.Context(), parseReference(t, registry+"/"+artifact), key)
				if err != nil || len(statements) != 2 {
					t.Errorf("%d statements, %v", len(statements), err)
				}
			})
		}
		for _, file := range []string{program + "-0.1.0.tgz", program + "/component-descriptor.yaml", program + "/blobs/blueprint.tar.gz"} {
			t.Run(file+" has signed provenance [O70]", func(t *testing.T) {
				signed, err := bundle.LoadJSONFromPath(filepath.Join(dir, "provenance.sigstore.json"))
				check(t, err)
				content, err := os.Open(filepath.Join(dir, file))
				check(t, err)
				defer content.Close() //nolint:errcheck // was read
				if _, err := cosign.VerifyNewBundle(t.Context(), key, verify.WithArtifact(content), signed); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// checkFiles requires that an image contains a single static program. If the image is for this machine, the program is
// also run.
func checkFiles(t *testing.T, dir, program, platform string) {
	t.Helper()
	var files []string
	check(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(dir, path)
			files = append(files, relative)
		}
		return err
	}))
	if !slices.Equal(files, []string{program}) {
		t.Errorf("the image adds %q to its base", files)
	}
	binary, err := elf.Open(filepath.Join(dir, program))
	check(t, err)
	defer binary.Close() //nolint:errcheck // was read
	if slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("it is not static")
	}
	if platform != runtime.GOOS+"/"+runtime.GOARCH {
		return
	}
	out, err := exec.Command(filepath.Join(dir, program), "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "version") {
		t.Errorf("%v: %s", err, out)
	}
}

// extractFiles writes the files of an image to a new directory, and returns the directory.
func extractFiles(t *testing.T, image v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	content := mutate.Extract(image)
	defer content.Close() //nolint:errcheck // was read
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		check(t, err)
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(strings.TrimPrefix(header.Name, "/")) {
			continue
		}
		path := filepath.Join(dir, header.Name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		raw, err := io.ReadAll(files)
		check(t, err)
		check(t, os.WriteFile(path, raw, 0o755)) //nolint:gosec // a program
	}
}

// listImages returns the images of a reference. The keys are the platforms of the images.
func listImages(t *testing.T, ref string) map[string]v1.Image {
	t.Helper()
	described, err := remote.Get(parseReference(t, ref))
	check(t, err)
	out := map[string]v1.Image{}
	if !described.MediaType.IsIndex() {
		image, err := described.Image()
		check(t, err)
		out[platforms[0]] = image
		return out
	}
	index, err := described.ImageIndex()
	check(t, err)
	manifest, err := index.IndexManifest()
	check(t, err)
	for _, entry := range manifest.Manifests {
		out[entry.Platform.String()], err = index.Image(entry.Digest)
		check(t, err)
	}
	return out
}

// listDigests returns the digests of the images of a reference.
func listDigests(t *testing.T, ref string) (out []string) {
	t.Helper()
	for _, image := range listImages(t, ref) {
		hash, err := image.Digest()
		check(t, err)
		out = append(out, hash.String())
	}
	slices.Sort(out)
	return out
}

func getDigest(t *testing.T, ref string) string {
	t.Helper()
	described, err := remote.Get(parseReference(t, ref))
	check(t, err)
	return described.Digest.String()
}

func parseReference(t *testing.T, ref string) name.Reference {
	t.Helper()
	parsed, err := name.ParseReference(ref, name.Insecure)
	check(t, err)
	return parsed
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
