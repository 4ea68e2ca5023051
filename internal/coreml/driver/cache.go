//go:build cgo && (darwin || linux)

package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// cached is the folder of a compiled model in the cache, "" if disabled. Renames make
// adding and removing it atomic, for concurrent processes.
type cached string

// cacheEntry returns the cache entry of a package for a version of the system.
func cacheEntry(dir, version string) cached {
	folder := os.Getenv(CacheVariable)
	if folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(user, "rlx", "coreml")
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", version)
	if sumOf(sum, dir) != nil {
		return ""
	}
	return cached(filepath.Join(folder, hex.EncodeToString(sum.Sum(nil))+".mlmodelc"))
}

// sumOf hashes the names, lengths and contents of all files of a folder, sorted by name.
func sumOf(sum io.Writer, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %d ", filepath.ToSlash(name), info.Size())
		_, err = io.Copy(sum, f)
		return err
	})
}

// there reports whether the entry exists.
func (c cached) there() bool {
	_, err := os.Lstat(string(c))
	return c != "" && err == nil
}

// remove removes an entry from the cache. It ignores failures, which only cost time.
func (c cached) remove() {
	if away, err := os.MkdirTemp(filepath.Dir(string(c)), "old-*"); err == nil {
		_ = os.Rename(string(c), filepath.Join(away, "model"))
		_ = os.RemoveAll(away)
	}
}

// keep moves a compiled model into the cache. If the entry exists afterwards, by this
// process or another, it removes the original and returns true.
func (c cached) keep(compiled string) bool {
	if c == "" || os.MkdirAll(filepath.Dir(string(c)), 0o755) != nil {
		return false
	}
	if os.Rename(compiled, string(c)) == nil {
		return true
	}
	if !c.there() && !c.storeCopy(compiled) {
		return false
	}
	_ = os.RemoveAll(compiled) // a leftover only takes space
	return true
}

// storeCopy copies a compiled model to the cache, which may be on another volume.
func (c cached) storeCopy(compiled string) bool {
	made, err := os.MkdirTemp(filepath.Dir(string(c)), "new-*")
	if err != nil {
		return false
	}
	defer os.RemoveAll(made)
	whole := filepath.Join(made, "model")
	if os.CopyFS(whole, os.DirFS(compiled)) != nil {
		return false
	}
	return os.Rename(whole, string(c)) == nil || c.there()
}
