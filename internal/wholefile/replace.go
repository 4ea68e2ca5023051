package wholefile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Replace has write write a file: even if the process is killed or the power fails, the file is the old one or the new one. It
// writes a temporary file in the same folder and renames it. It keeps the permissions of an existing file and follows links, also
// to a missing file. Only a killed process leaves its temporary file, ".rlx-H-N.tmp" with a hash H of the name; a later
// Replace of the same name removes it after an hour. An error of the file is a [*fs.PathError] with its name.
func Replace(name string, write func(w io.Writer) error) error {
	name, mode, exists, err := target(name)
	if err != nil {
		return err
	}
	dir, base := filepath.Split(name)
	removeStale(dir, base)
	// The name has a fixed length, since the file's own name may have the maximal length.
	beside := filepath.Join(dir, fmt.Sprintf("%s%016x.tmp", TemporaryPrefix(base), rand.Uint64()))
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return named(err, beside, name)
	}
	if exists {
		err = f.Chmod(mode) // undoes the umask
	}
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Sync() // the data must be on disk before the rename
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(beside, name)
	}
	if err != nil {
		return errors.Join(named(err, beside, name), os.Remove(beside))
	}
	return syncFolder(dir)
}

// named makes an error of the temporary file one of the file to write.
func named(err error, beside, name string) error {
	if of := (*fs.PathError)(nil); errors.As(err, &of) && of.Path == beside {
		of.Path = name
	}
	return err
}

// TemporaryPrefix begins the names of the temporary files of [Replace] for a file of a folder.
func TemporaryPrefix(base string) string {
	h := fnv.New64a()
	h.Write([]byte(base)) // never fails
	return fmt.Sprintf(".rlx-%016x-", h.Sum64())
}

// staleAfter is the age from which on a temporary file is abandoned.
const staleAfter = time.Hour

// removeStale removes temporary files of killed processes. It ignores errors.
func removeStale(dir, base string) {
	left, err := filepath.Glob(filepath.Join(escaped(dir), TemporaryPrefix(base)+strings.Repeat("[0-9a-f]", 16)+".tmp"))
	if err != nil {
		return
	}
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(name)
		}
	}
}

// escaped returns a glob pattern that matches only the folder.
func escaped(dir string) string {
	if runtime.GOOS == "windows" {
		return dir // its patterns have no escapes
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// newFile is the mode of new files, before the umask.
const newFile fs.FileMode = 0o666

// maxLinks bounds the links followed, as on Linux.
const maxLinks = 40

// target follows links and returns the file to replace and its permissions, newFile if it
// does not exist.
func target(name string) (file string, mode fs.FileMode, exists bool, err error) {
	for range maxLinks {
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, newFile, false, nil
		case err != nil:
			return name, 0, false, err
		case info.Mode().IsRegular():
			return name, info.Mode().Perm(), true, nil
		case info.Mode().Type() != fs.ModeSymlink:
			return name, 0, false, &fs.PathError{Op: "replace", Path: name, Err: errors.New("not a regular file; only those are replaced")}
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

// syncFolder makes the rename durable. Windows has no such call.
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
