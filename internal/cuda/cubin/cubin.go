// Package cubin is an on-disk cache of compiled kernels and plans. Keys are hashes of
// everything that the content depends on. Files are written atomically and have a checksum,
// so processes can share a folder and damaged files count as missing.
//
// The folder is rlx/cuda in the user's cache folder, or the value of the environment
// variable RLX_CUDA_CACHE; "off" disables the cache. Failing writes only cost time. Deleting
// the folder is always safe.
package cubin

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"

	"github.com/rlx-go/rlx/internal/wholefile"
)

// Variable is the environment variable that names the folder.
const Variable = "RLX_CUDA_CACHE"

// Key names an entry.
type Key [sha256.Size]byte

// KeyOf hashes the inputs of an entry: for a cubin the source, compiler, architecture and
// options.
func KeyOf(parts ...string) Key {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(p))) // a hash never fails
		h.Write([]byte(p))
	}
	return Key(h.Sum(nil))
}

// Store is a folder of entries. The zero Store is empty and discards writes.
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

// magic begins every file. The checksum of the content and the content follow.
const magic = "rlxcubin"

func (s Store) path(k Key) string {
	name := hex.EncodeToString(k[:])
	return filepath.Join(s.dir, name[:2], name[2:])
}

// Get returns an entry, if it is present and intact.
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

// Put writes an entry.
func (s Store) Put(k Key, image []byte) error {
	if s.dir == "" {
		return nil
	}
	sum := sha256.Sum256(image)
	return wholefile.Write(s.path(k), slices.Concat([]byte(magic), sum[:], image))
}
