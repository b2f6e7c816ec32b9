// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"

	"github.com/sigstore/cosign/v3/pkg/cosign"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// keypair is a key pair that `cosign generate-key-pair` created.
type keypair struct {
	signer signature.Signer
	public *ecdsa.PublicKey
	hint   []byte
}

var _ sign.Keypair = &keypair{}

// LoadKey decrypts a private key that `cosign generate-key-pair` created, from the content of its file.
func LoadKey(content, password []byte) (sign.Keypair, error) {
	signer, err := cosign.LoadPrivateKey(content, password, nil)
	if err != nil {
		return nil, err
	}
	public, err := signer.PublicKey()
	if err != nil {
		return nil, err
	}
	key, ok := public.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key is not an ECDSA key with the curve P-256")
	}
	encoded, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(encoded)
	return &keypair{signer: signer, public: key, hint: []byte(base64.StdEncoding.EncodeToString(sum[:]))}, nil
}

// GetHashAlgorithm returns the algorithm of the digest that is signed.
func (k *keypair) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}

// GetSigningAlgorithm returns the algorithm of the signatures.
func (k *keypair) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}

// GetHint returns the fingerprint of the public key. A bundle contains this fingerprint instead of the key.
func (k *keypair) GetHint() []byte { return k.hint }

// GetKeyAlgorithm returns the family of the signing algorithm.
func (k *keypair) GetKeyAlgorithm() string { return "ECDSA" }

// GetPublicKey returns the public key.
func (k *keypair) GetPublicKey() crypto.PublicKey { return k.public }

// GetPublicKeyPem returns the public key in PEM.
func (k *keypair) GetPublicKeyPem() (string, error) {
	out, err := cryptoutils.MarshalPublicKeyToPEM(k.public)
	return string(out), err
}

// SignData returns the signature of data, and the digest that was signed.
func (k *keypair) SignData(_ context.Context, data []byte) (signed, digest []byte, err error) {
	sum := sha256.Sum256(data)
	signed, err = k.signer.SignMessage(bytes.NewReader(data))
	return signed, sum[:], err
}
