// SPDX-License-Identifier: Apache-2.0

// Package attest signs the artifacts of a release and their provenance. Signatures and provenance are in-toto
// statements in Sigstore bundles. cosign writes and verifies the same format. The statements are signed with a cosign
// key pair. No service on the Internet is involved.
package attest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// ProvenanceType is the predicate type of provenance statements.
	ProvenanceType = "https://slsa.dev/provenance/v1"
	// BuildType is the URI of the page that describes how the artifacts are built.
	BuildType = "https://github.com/deployerkit/deployerkit/blob/main/docs/installing.md#signatures"
)

// Signer signs the artifacts of one release.
type Signer struct {
	Key     sign.Keypair
	Version string // such as v0.1.0
	Commit  string // commit from which the artifacts were built
	Source  string // URI of the repository with the commit
	Builder string // URI of the builder of the artifacts
}

// SignArtifact signs an image or a chart in a registry, and attaches the signature and the signed provenance to it. It
// returns an error if the artifact was not built from the commit of the release.
func (s *Signer) SignArtifact(ctx context.Context, ref name.Reference) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	described, err := remote.Get(ref, options...)
	if err != nil {
		return err
	}
	found, err := findOrigin(described)
	if err != nil {
		return fmt.Errorf("read the origin of %s: %w", ref, err)
	}
	if found.commit != s.Commit {
		return fmt.Errorf("%s was built from commit %q, not from %q", ref, found.commit, s.Commit)
	}
	predicate, err := s.newProvenance(ref.Name(), found.bases)
	if err != nil {
		return err
	}
	digest := ref.Context().Digest(described.Digest.String())
	subject := []*intoto.ResourceDescriptor{{Name: ref.Context().Name(), Digest: map[string]string{described.Digest.Algorithm: described.Digest.Hex}}}
	for predicateType, content := range map[string]*structpb.Struct{types.CosignSignPredicateType: {}, ProvenanceType: predicate} {
		bundle, err := s.newBundle(ctx, &intoto.Statement{Type: intoto.StatementTypeUri, Subject: subject, PredicateType: predicateType, Predicate: content})
		if err != nil {
			return err
		}
		if err := ociremote.WriteAttestationNewBundleFormat(digest, bundle, predicateType, ociremote.WithRemoteOptions(options...)); err != nil {
			return fmt.Errorf("attach a statement to %s: %w", ref, err)
		}
	}
	return nil
}

// SignFiles returns a bundle that contains the signed provenance of the given files. The paths are relative to dir.
func (s *Signer) SignFiles(ctx context.Context, dir string, paths ...string) ([]byte, error) {
	predicate, err := s.newProvenance("files", nil)
	if err != nil {
		return nil, err
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: ProvenanceType, Predicate: predicate}
	for _, path := range paths {
		content, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{Name: path, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
	}
	return s.newBundle(ctx, statement)
}

// newProvenance returns a predicate that contains the commit, the builder, and the base images of an artifact.
func (s *Signer) newProvenance(artifact string, bases []*intoto.ResourceDescriptor) (*structpb.Struct, error) {
	parameters, err := structpb.NewStruct(map[string]any{"artifact": artifact, "version": s.Version})
	if err != nil {
		return nil, err
	}
	source := &intoto.ResourceDescriptor{Uri: "git+" + s.Source, Digest: map[string]string{"gitCommit": s.Commit}}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: BuildType, ExternalParameters: parameters, ResolvedDependencies: append([]*intoto.ResourceDescriptor{source}, bases...),
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: s.Builder}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	raw, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, err
	}
	out := &structpb.Struct{}
	return out, protojson.Unmarshal(raw, out)
}

// newBundle signs a statement and returns a Sigstore bundle.
func (s *Signer) newBundle(ctx context.Context, statement *intoto.Statement) ([]byte, error) {
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	payload, err := protojson.Marshal(statement)
	if err != nil {
		return nil, err
	}
	signed, err := sign.Bundle(&sign.DSSEData{Data: payload, PayloadType: types.IntotoPayloadType}, s.Key, sign.BundleOptions{Context: ctx})
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return protojson.Marshal(signed)
}
