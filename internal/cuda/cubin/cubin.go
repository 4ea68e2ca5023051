// Package cubin keeps compiled kernels, and the plans they are of, on disk, so that a
// program compiles each but once on a machine. Entries are named by all that the code depends on,
// written whole or not at all, and looked at before they are used: processes
// share a folder safely, and what is damaged counts as missing.
//
// The folder is rlx/cuda in the user's cache folder, or the one that the
// environment variable RLX_CUDA_CACHE names; "off" is none. A folder that cannot
// be written to costs time and is no error. Deleting it is always safe.
package cubin

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// Variable is the environment variable that names the folder.
const Variable = "RLX_CUDA_CACHE"

// Key names an entry.
type Key [sha256.Size]byte

// KeyOf returns the key of what depends on the given texts: of a cubin source,
// compiler, architecture, options.
func KeyOf(parts ...string) Key {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(p))) // a hash takes all
		h.Write([]byte(p))
	}
	return Key(h.Sum(nil))
}

// Store is a folder of cubins. The zero Store holds nothing.
type Store struct{ dir string }

// Open returns the store of this user.
func Open() Store {
	dir := os.Getenv(Variable)
	if dir == "off" {
		return Store{}
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return Store{} // a user without a home
		}
		dir = filepath.Join(cache, "rlx", "cuda")
	}
	return Store{dir}
}

// magic begins every file; a sum of the cubin and the cubin itself follow.
const magic = "rlxcubin"

func (s Store) path(k Key) string {
	name := hex.EncodeToString(k[:])
	return filepath.Join(s.dir, name[:2], name[2:])
}

// Get returns a cubin that was put, if it is there and whole.
func (s Store) Get(k Key) ([]byte, bool) {
	if s.dir == "" {
		return nil, false
	}
	file, err := os.ReadFile(s.path(k))
	if err != nil || len(file) < len(magic)+sha256.Size || string(file[:len(magic)]) != magic {
		return nil, false
	}
	sum, image := file[len(magic):len(magic)+sha256.Size], file[len(magic)+sha256.Size:]
	if got := sha256.Sum256(image); !bytes.Equal(got[:], sum) {
		return nil, false
	}
	return image, true
}

// Put keeps a cubin. The error says why it could not.
func (s Store) Put(k Key, image []byte) error {
	if s.dir == "" {
		return nil
	}
	path := s.path(k)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// A file that is written appears under another name, and is renamed once it
	// is whole.
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	sum := sha256.Sum256(image)
	_, err = f.Write(slices.Concat([]byte(magic), sum[:], image))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
