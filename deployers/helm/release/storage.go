// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Storage stores the records of a release in Secrets of its namespace, in the same format as Helm. All writes are
// fenced: a record that was changed by another client in the meantime is not overwritten. A Storage is safe for
// concurrent use.
type Storage struct {
	client          client.Client
	namespace, name string
}

// NewStorage returns a Storage for a release.
func NewStorage(c client.Client, namespace, name string) *Storage {
	return &Storage{client: c, namespace: namespace, name: name}
}

// Namespace returns the namespace of the release.
func (s *Storage) Namespace() string { return s.namespace }

// Revision is the metadata of a record.
type Revision struct {
	Number int
	Status Status
	// Operation is the value of LabelOperation. It is empty if another client wrote the record.
	Operation string
	// Modified is the time of the last write, as far as it is known.
	Modified time.Time
	// UID is the UID of the Secret.
	UID types.UID

	object *unstructured.Unstructured
}

// Labels returns the labels that select the records of the release.
func (s *Storage) Labels() map[string]string {
	return map[string]string{"owner": "helm", "name": s.name}
}

// SecretName returns the name of the Secret for a revision.
func (s *Storage) SecretName(revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", s.name, revision)
}

// List returns all revisions, the oldest first. It reads only metadata.
func (s *Storage) List(ctx context.Context) ([]Revision, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := s.client.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels(s.Labels())); err != nil {
		return nil, fmt.Errorf("list the revisions of release %s: %w", s.name, err)
	}
	var out []Revision
	for i := range list.Items {
		item := &list.Items[i]
		number, err := strconv.Atoi(item.Labels["version"])
		if err != nil || item.Name != s.SecretName(number) {
			continue
		}
		one := Revision{
			Number: number, Status: Status(item.Labels["status"]), Operation: item.Labels[LabelOperation], UID: item.UID,
			Modified: item.CreationTimestamp.Time, object: metadataOf(item),
		}
		for _, label := range []string{"createdAt", "modifiedAt"} {
			if seconds, err := strconv.ParseInt(item.Labels[label], 10, 64); err == nil && time.Unix(seconds, 0).After(one.Modified) {
				one.Modified = time.Unix(seconds, 0)
			}
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Revision) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// metadataOf converts metadata to the form in which package observe compares it.
func metadataOf(item *metav1.PartialObjectMetadata) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	object.SetNamespace(item.Namespace)
	object.SetName(item.Name)
	object.SetUID(item.UID)
	object.SetResourceVersion(item.ResourceVersion)
	object.SetLabels(item.Labels)
	return object
}

// Baseline returns the metadata of revisions in the form that observe.Subscription.SetBaseline expects.
func Baseline(revisions []Revision) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(revisions))
	for _, one := range revisions {
		out = append(out, one.object)
	}
	return out
}

// ErrNotFound is returned by Get if a record does not exist.
var ErrNotFound = errors.New("the release record does not exist")

// Get reads a record. It returns ErrNotFound if the record does not exist.
func (s *Storage) Get(ctx context.Context, revision int) (*Record, error) {
	secret := &corev1.Secret{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.SecretName(revision)}, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("revision %d of release %s: %w", revision, s.name, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("get revision %d of release %s: %w", revision, s.name, err)
	}
	rel, err := decode(secret.Data["release"])
	if err != nil {
		return nil, newError(ReasonRecord, "the record of revision %d of release %s %v", revision, s.name, err)
	}
	rel.Labels = maps.Clone(secret.Labels)
	for _, label := range []string{"name", "owner", "status", "version", "createdAt", "modifiedAt"} {
		delete(rel.Labels, label)
	}
	return &Record{release: rel, uid: secret.UID, resourceVersion: secret.ResourceVersion}, nil
}

// ErrConflict is returned by Create and Update if another client has written the record.
var ErrConflict = errors.New("another client has written the release record")

// Create stores a new record. It returns ErrConflict if the revision exists already.
func (s *Storage) Create(ctx context.Context, r *Record, now time.Time) error {
	secret, err := s.secret(r, "createdAt", now)
	if err != nil {
		return err
	}
	err = s.client.Create(ctx, secret, client.FieldOwner("deployerkit-helm"))
	return s.stored(r, secret, err)
}

// Update stores a changed record. It returns ErrConflict if the record was changed or deleted since it was read or
// written.
func (s *Storage) Update(ctx context.Context, r *Record, now time.Time) error {
	secret, err := s.secret(r, "modifiedAt", now)
	if err != nil {
		return err
	}
	secret.UID, secret.ResourceVersion = r.uid, r.resourceVersion
	err = s.client.Update(ctx, secret, client.FieldOwner("deployerkit-helm"))
	return s.stored(r, secret, err)
}

// stored handles the answer to a write.
func (s *Storage) stored(r *Record, secret *corev1.Secret, err error) error {
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err) && secret.ResourceVersion != "":
		return fmt.Errorf("revision %d of release %s: %w", r.Revision(), s.name, ErrConflict)
	case err != nil:
		return fmt.Errorf("store revision %d of release %s: %w", r.Revision(), s.name, err)
	}
	r.uid, r.resourceVersion = secret.UID, secret.ResourceVersion
	return nil
}

// secret returns the Secret for a record.
func (s *Storage) secret(r *Record, timeLabel string, now time.Time) (*corev1.Secret, error) {
	data, err := r.encode()
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	maps.Copy(labels, r.release.Labels)
	maps.Copy(labels, s.Labels())
	labels["status"], labels["version"] = string(r.Status()), strconv.Itoa(r.Revision())
	labels[timeLabel] = strconv.FormatInt(now.Unix(), 10)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.SecretName(r.Revision()), Labels: labels},
		Type:       "helm.sh/release.v1", Data: map[string][]byte{"release": data},
	}, nil
}

// Delete deletes a record. It does nothing if the record does not exist, or if another record has the same name.
func (s *Storage) Delete(ctx context.Context, r Revision) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.SecretName(r.Number)}}
	err := s.client.Delete(ctx, secret, client.Preconditions{UID: &r.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete revision %d of release %s: %w", r.Number, s.name, err)
	}
	return nil
}
