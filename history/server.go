// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// pathPrefix is the beginning of the URL path of a history. The namespace and the name of the item follow:
// /history/NAMESPACE/NAME.
const pathPrefix = "/history/"

// These constants limit the load on the server.
const (
	requestsPerSecond = 5 // each of them causes two requests to the API server
	requestsBurst     = 20
	requestTimeout    = 15 * time.Second
	maxHeaderBytes    = 16 << 10
	maxToken          = 12 << 10
)

// A [Reviewer] returns one of these errors if the user may not read the history.
var (
	errUnauthenticated = errors.New("the token is missing or not valid")
	errForbidden       = errors.New("get on the deploy item is not allowed")
)

// Reviewer decides who may read the history of an item.
type Reviewer struct {
	tokens authenticationv1client.TokenReviewsGetter
	access authorizationv1client.SubjectAccessReviewsGetter
}

// NewReviewer returns a Reviewer that asks an API server. The argument cfg is a config for the cluster of the deploy
// items. With a TokenReview, the Reviewer checks that the token belongs to a user of that cluster. With a
// SubjectAccessReview, it checks that the user may get the deploy item.
func NewReviewer(cfg *rest.Config) (*Reviewer, error) {
	tokens, err := authenticationv1client.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	access, err := authorizationv1client.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Reviewer{tokens: tokens, access: access}, nil
}

// checkAccess returns an error if the owner of the token may not read the item.
func (r *Reviewer) checkAccess(ctx context.Context, token string, item types.NamespacedName) error {
	if token == "" || len(token) > maxToken {
		return errUnauthenticated
	}
	who, err := r.tokens.TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("review token: %w", err)
	}
	if !who.Status.Authenticated {
		return errUnauthenticated
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := r.access.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "get", Group: lsv1alpha1.SchemeGroupVersion.Group, Version: lsv1alpha1.SchemeGroupVersion.Version, Resource: "deployitems",
			Namespace: item.Namespace, Name: item.Name,
		},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("review access: %w", err)
	case !may.Status.Allowed || may.Status.Denied:
		return errForbidden
	}
	return nil
}

// NewHandler returns a handler that serves the histories in a store at [Path]. A user who may get a deploy item may
// also read its history.
func NewHandler(store *Store, deployer Deployer, reviewer *Reviewer) http.Handler {
	return &handler{store: store, deployer: deployer, review: reviewer.checkAccess, limit: rate.NewLimiter(requestsPerSecond, requestsBurst)}
}

type handler struct {
	store    *Store
	deployer Deployer
	review   func(ctx context.Context, token string, item types.NamespacedName) error
	limit    *rate.Limiter
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	item, ok := parsePath(req.URL.Path)
	switch {
	case req.Method != http.MethodGet:
		http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
		return
	case !ok:
		http.Error(w, "want "+pathPrefix+"NAMESPACE/NAME", http.StatusNotFound)
		return
	case !h.limit.Allow():
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	ctx, cancel := context.WithTimeout(req.Context(), requestTimeout)
	defer cancel()
	switch err := h.review(ctx, strings.TrimSpace(token), item); {
	case errors.Is(err, errUnauthenticated):
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	case errors.Is(err, errForbidden):
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	case err != nil:
		http.Error(w, "the token could not be reviewed", http.StatusServiceUnavailable)
		return
	}
	list := struct {
		Deployer   Deployer          `json:"deployer"`
		Reconciles []json.RawMessage `json:"reconciles"`
	}{Deployer: h.deployer, Reconciles: []json.RawMessage{}}
	for _, raw := range h.store.raw(item) {
		list.Reconciles = append(list.Reconciles, raw)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(list) // fails only if the client has disconnected
}

// parsePath returns the namespace and the name of the item in a URL path.
func parsePath(path string) (types.NamespacedName, bool) {
	rest, ok := strings.CutPrefix(path, pathPrefix)
	namespace, name, found := strings.Cut(rest, "/")
	return types.NamespacedName{Namespace: namespace, Name: name},
		ok && found && namespace != "" && name != "" && !strings.Contains(name, "/") && len(rest) < 600
}

// Server serves a handler over TLS until its context is done. It is a Runnable of controller-runtime and runs on every
// replica. If the address is in use, Start logs the error instead of returning it, because the deployer works without a
// history.
type Server struct {
	// Address is the listen address: HOST:PORT.
	Address string
	// CertFile and KeyFile are the files of the certificate and its key. The default is a self-signed certificate for
	// localhost.
	CertFile, KeyFile string
	Handler           http.Handler
	Log               logr.Logger
}

// NeedLeaderElection returns false, because every replica serves its own history.
func (s *Server) NeedLeaderElection() bool { return false }

// newServer returns the HTTP server with its limits.
func (s *Server) newServer(certificate tls.Certificate) *http.Server {
	return &http.Server{
		Handler: s.Handler, MaxHeaderBytes: maxHeaderBytes, ReadTimeout: requestTimeout, WriteTimeout: 2 * requestTimeout, IdleTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		ErrorLog:  slog.NewLogLogger(logr.ToSlogHandler(s.Log), slog.LevelInfo),
	}
}

// Start implements manager.Runnable. It returns an error if the certificate cannot be read or created.
func (s *Server) Start(ctx context.Context) error {
	certificate, err := s.loadCertificate()
	if err != nil {
		return fmt.Errorf("prepare the certificate of the history server: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		s.Log.Info("the history is not served", "address", s.Address, "error", err.Error())
		return nil
	}
	server := s.newServer(certificate)
	s.Log.Info("serving the history of reconciles", "address", listener.Addr().String())
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the history: %w", err)
	}
	return nil
}

// loadCertificate reads or creates the certificate.
func (s *Server) loadCertificate() (tls.Certificate, error) {
	if s.CertFile != "" {
		return tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	}
	return createCertificate(time.Now()) //nolint:forbidigo // the clients of the server have no other clock
}

// createCertificate creates a self-signed certificate that is valid for a year. Its key is an elliptic curve key,
// because the generation of an RSA key takes a tenth of a second of processor time at each start.
func createCertificate(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}
