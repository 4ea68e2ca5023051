//go:build cgo && (darwin || linux)

package metal

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/metal/driver"
	"github.com/rlx-go/rlx/internal/wholefile"
)

// CacheVariable is the environment variable for the folder of compiled pipelines.
const CacheVariable = "RLX_METAL_CACHE"

// cache is the file with the pipelines of one plan. Metal validates its content, so a file
// of another system or GPU only costs time, as do all failures.
type cache struct {
	archive driver.Archive // the zero Archive if there is none
	fresh   bool           // the file is new and is written by close
	path    string
	usable  bool
}

// openCache opens the file for the kernels of a plan on a device.
func openCache(d *driver.Device, kernels []plan.Kernel) *cache {
	c := &cache{path: cachePath(d.Info().Name, kernels)}
	if c.path == "" || len(kernels) == 0 {
		return c
	}
	var err error
	if _, missing := os.Stat(c.path); missing == nil {
		if c.archive, err = d.OpenArchive(c.path); err == nil {
			c.usable = true
			return c
		}
	}
	c.archive, err = d.OpenArchive("")
	c.usable, c.fresh = err == nil, err == nil
	return c
}

// cachePath returns the file's path, "" if there is no cache folder.
func cachePath(device string, kernels []plan.Kernel) string {
	folder := os.Getenv(CacheVariable)
	if folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(user, "rlx", "metal")
	}
	sum := sha256.New()
	sum.Write([]byte(device))
	for i := range kernels {
		sum.Write([]byte{0})
		sum.Write([]byte(kernels[i].Source))
	}
	return filepath.Join(folder, hex.EncodeToString(sum.Sum(nil))+".binarchive")
}

// close writes a new file atomically and releases the archive.
func (c *cache) close() {
	if !c.usable {
		return
	}
	defer c.archive.Release()
	if c.fresh {
		_ = wholefile.Make(c.path, c.archive.Save) // the next program compiles again
	}
}
