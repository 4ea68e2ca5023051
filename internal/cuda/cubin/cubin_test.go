package cubin_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/internal/cuda/cubin"
)

func open(t *testing.T) (cubin.Store, string) {
	dir := t.TempDir()
	t.Setenv(cubin.Variable, dir)
	return cubin.Open(), dir
}

// files returns the paths of all files below a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGetReturnsStoredEntry(t *testing.T) {
	s, dir := open(t)
	key, other := cubin.KeyOf("source", "13.0"), cubin.KeyOf("source1", "3.0")
	if _, ok := s.Get(key); ok {
		t.Error("an empty store has a cubin")
	}
	if err := s.Put(key, []byte("code")); err != nil {
		t.Fatal(err)
	}
	if got, ok := s.Get(key); !ok || string(got) != "code" {
		t.Errorf("got %q, %t", got, ok)
	}
	if _, ok := s.Get(other); ok {
		t.Error("texts that are cut elsewhere have one key")
	}
	if n := len(files(t, dir)); n != 1 {
		t.Errorf("%d files are left, want 1", n)
	}
}

func TestDamagedEntryIsMissingUntilStoredAgain(t *testing.T) {
	s, dir := open(t)
	key := cubin.KeyOf("source")
	put := func() {
		if err := s.Put(key, []byte("code of a kernel")); err != nil {
			t.Fatal(err)
		}
	}
	put()
	path := files(t, dir)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-1] ^= 1
	for name, damage := range map[string][]byte{"empty": {}, "cut": whole[:len(whole)-3], "short": whole[:9], "flipped": flipped, "other": []byte("something else that is long enough to be an entry")} {
		if err := os.WriteFile(path, damage, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Get(key); ok {
			t.Errorf("%s: the entry is used", name)
		}
		put()
		if got, ok := s.Get(key); !ok || string(got) != "code of a kernel" {
			t.Errorf("%s: %q, %t after it was put again", name, got, ok)
		}
	}
}

func TestConcurrentWritersOfOneEntryAreAtomic(t *testing.T) {
	s, dir := open(t)
	key, image := cubin.KeyOf("source"), bytes.Repeat([]byte("code"), 1<<16)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				if err := s.Put(key, image); err != nil {
					t.Error(err)
				}
				if got, ok := s.Get(key); !ok || !bytes.Equal(got, image) {
					t.Error("an entry is there in part")
				}
			}
		})
	}
	all.Wait()
	if n := len(files(t, dir)); n != 1 {
		t.Errorf("%d files are left, want 1", n)
	}
}

func TestStoreWithoutFolderIsEmpty(t *testing.T) {
	t.Setenv(cubin.Variable, "off")
	off := cubin.Open()
	if err := off.Put(cubin.Key{}, []byte("code")); err != nil {
		t.Error(err)
	}
	if _, ok := off.Get(cubin.Key{}); ok {
		t.Error("a store that is off has a cubin")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(cubin.Variable, file)
	if err := cubin.Open().Put(cubin.Key{}, []byte("code")); err == nil {
		t.Error("a folder that cannot be is no error")
	}
}
