// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
)

// File is a file of a chart. Its name is relative to the directory of the chart and contains slashes.
type File struct {
	Name string
	Data []byte
}

// Limits restrict archives. The zero value of a field selects its default.
type Limits struct {
	// Archive is the maximum size of the compressed archive, in bytes. The default is 10 MiB.
	Archive int64
	// Unpacked is the maximum size of all files together, in bytes. The default is 100 MiB.
	Unpacked int64
	// Files is the maximum number of files. The default is 10 000.
	Files int
}

// Default returns the limits with all defaults set.
func (l Limits) Default() Limits {
	return Limits{Archive: cmp.Or(l.Archive, 10<<20), Unpacked: cmp.Or(l.Unpacked, 100<<20), Files: cmp.Or(l.Files, 10_000)}
}

// maxDepth is the maximum number of archives that may contain each other.
const maxDepth = 8

// Unpack returns the files of a chart archive. It replaces the archives of subcharts (charts/*.tgz) by their files, so
// that the limits apply to all of them together. It returns a final *Error if the archive exceeds a limit, cannot be
// read, or contains a link, a special file or a path outside the chart.
func Unpack(data []byte, limits Limits) ([]File, error) {
	u := unpacker{limits: limits.Default()}
	if int64(len(data)) > u.limits.Archive {
		return nil, newError("", "the chart archive has %d bytes, more than the limit of %d", len(data), u.limits.Archive)
	}
	if err := u.unpack("", data, 0); err != nil {
		return nil, err
	}
	if len(u.files) == 0 {
		return nil, newError("", "the chart archive contains no files")
	}
	return u.files, nil
}

// unpacker collects the files of an archive and of the archives in it.
type unpacker struct {
	limits Limits
	size   int64
	files  []File
}

// unpack adds the files of an archive, with a prefix for their names.
func (u *unpacker) unpack(prefix string, data []byte, depth int) error {
	where := cmp.Or(strings.TrimSuffix(prefix, "/"), "the chart archive")
	if depth > maxDepth {
		return newError("", "%s: more than %d archives contain each other", where, maxDepth)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return newError("", "%s is not a gzip file", where)
	}
	// Headers and padding count as well, because they cost time although they contain no files.
	budget := &io.LimitedReader{R: unzipped, N: 2*u.limits.Unpacked + int64(u.limits.Files)*1024 + 1}
	reader := tar.NewReader(budget)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return newError("", "%s is not a valid tar file", where)
		}
		if err := u.add(prefix, where, header, reader, depth); err != nil {
			return err
		}
	}
}

// add adds a file of an archive.
func (u *unpacker) add(prefix, where string, header *tar.Header, content io.Reader, depth int) error {
	switch header.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
		return nil
	default:
		return newError("", "%s contains %q, which is a link or a special file", where, clip(header.Name))
	}
	name, err := relativeName(header.Name)
	if err != nil {
		return newError("", "%s contains %q: %w", where, clip(header.Name), err)
	}
	if len(u.files) >= u.limits.Files {
		return newError("", "the chart contains more than %d files", u.limits.Files)
	}
	data, err := io.ReadAll(io.LimitReader(content, u.limits.Unpacked-u.size+1))
	if err != nil {
		return newError("", "%s: %q cannot be read", where, clip(header.Name))
	}
	if u.size += int64(len(data)); u.size > u.limits.Unpacked {
		return newError("", "the files of the chart have more than %d bytes", u.limits.Unpacked)
	}
	if directory, nested := subchartDirectory(name); nested {
		return u.unpack(prefix+directory, data, depth+1)
	}
	u.files = append(u.files, File{Name: prefix + name, Data: bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))})
	return nil
}

// relativeName removes the first element of a path in an archive, which is the directory of the chart.
func relativeName(name string) (string, error) {
	name = strings.ReplaceAll(name, `\`, "/")
	if path.IsAbs(name) || len(name) > 1 && name[1] == ':' {
		return "", errors.New("the path is absolute")
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", errors.New("the path leads out of the chart")
	}
	_, rest, found := strings.Cut(strings.TrimPrefix(name, "./"), "/")
	if rest = path.Clean(rest); !found || rest == "." {
		return "", errors.New("the file is not in the directory of the chart")
	}
	return rest, nil
}

// subchartDirectory returns the directory for the files of a subchart, if the name is that of a subchart's archive.
func subchartDirectory(name string) (directory string, nested bool) {
	base, found := strings.CutPrefix(name, "charts/")
	if !found || strings.Contains(base, "/") || strings.IndexAny(base, "_.") == 0 {
		return "", false
	}
	directory, nested = strings.CutSuffix(base, ".tgz")
	return "charts/" + directory + "/", nested
}

// clip shortens a name from an archive for use in an error.
func clip(name string) string {
	const limit = 100
	if len(name) > limit {
		return name[:limit] + "…"
	}
	return name
}
