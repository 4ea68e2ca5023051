package safetensors

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/rlx-go/rlx/native"
)

// ReadFile is [Read] for the file of that name.
func ReadFile(name string) (tensors map[string]native.Tensor, metadata map[string]string, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	if tensors, metadata, err = Decode(data); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return tensors, metadata, err
}

// WriteFile is [Write] to the file of that name, in place of one that is there,
// whose permissions are kept from the first byte on. Links are followed, one to a file that
// is not there yet too. Whatever happens, even that the process is killed or the power
// fails, the file is the old one or the new one, and whole: the tensors are written to a
// file beside it, which then takes its name. That file, ".rlx-H-N.tmp" with a number H of
// the name, is left behind only by a process that was killed; the next one that saves under
// the name an hour later or more removes it.
func WriteFile(name string, tensors map[string]native.Tensor, metadata map[string]string) error {
	name, mode, exists, err := target(name)
	if err != nil {
		return err
	}
	dir, base := filepath.Split(name)
	removeStale(dir, base)
	// A name of its own length: one as long as a file name may be has room for no more.
	beside := filepath.Join(dir, fmt.Sprintf("%s%016x.tmp", temporaryPrefix(base), rand.Uint64()))
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if exists {
		err = f.Chmod(mode) // which the process's mask has had a part in
	}
	if err == nil {
		err = Write(f, tensors, metadata)
	}
	if err == nil {
		err = f.Sync() // a name must not come to stand for what is not on the disk
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(dir)
}

// temporaryPrefix begins the names of the files that are written in place of one.
func temporaryPrefix(base string) string {
	h := fnv.New64a()
	h.Write([]byte(base)) // never fails
	return fmt.Sprintf(".rlx-%016x-", h.Sum64())
}

// staleAfter is how long nothing was written to a file that nobody will finish.
const staleAfter = time.Hour

// removeStale removes what processes that were killed have left of saves under a name. It
// is no failure of a save if that fails.
func removeStale(dir, base string) {
	left, err := filepath.Glob(filepath.Join(escaped(dir), temporaryPrefix(base)+strings.Repeat("[0-9a-f]", 16)+".tmp"))
	if err != nil {
		return
	}
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(name)
		}
	}
}

// escaped returns a pattern that a folder alone matches.
func escaped(dir string) string {
	if runtime.GOOS == "windows" {
		return dir // whose patterns have no escapes
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// newFile is what a file that is not there yet is made with, less the process's mask.
const newFile fs.FileMode = 0o666

// mostLinks is how many links are followed, as on Linux.
const mostLinks = 40

// target follows links to the file that is to be replaced, and returns its
// permissions, those of a new file where there is none yet.
func target(name string) (file string, mode fs.FileMode, exists bool, err error) {
	for range mostLinks {
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, newFile, false, nil
		case err != nil:
			return name, 0, false, err
		case info.Mode().IsRegular():
			return name, info.Mode().Perm(), true, nil
		case info.Mode().Type() != fs.ModeSymlink:
			return name, 0, false, &fs.PathError{Op: "replace", Path: name, Err: errors.New("it is no regular file")}
		}
		to, err := os.Readlink(name)
		if err != nil {
			return name, 0, false, err
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(name)) // ".." is of the folder that it is
			if err != nil {
				return name, 0, false, err
			}
			to = filepath.Join(dir, to)
		}
		name = to
	}
	return name, 0, false, &fs.PathError{Op: "replace", Path: name, Err: errors.New("too many links")}
}

// syncFolder makes the new name last. Windows has nothing of the kind.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	if dir == "" {
		dir = "."
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
