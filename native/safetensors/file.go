package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"

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
// whose permissions are kept. Whatever happens, even that the process is killed
// or the power fails, the file is the old one or the new one, and whole: the
// tensors are written to a file beside it, which then takes its name. That file,
// ".NAME.N.tmp", is left behind only by a process that was killed.
func WriteFile(name string, tensors map[string]native.Tensor, metadata map[string]string) error {
	name, mode, err := target(name)
	if err != nil {
		return err
	}
	dir, base := filepath.Split(name)
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".%s.%d.tmp", base, rand.Uint64())), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = Write(f, tensors, metadata)
	if err == nil && mode != 0 {
		err = f.Chmod(mode)
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

// target follows links to the file that is to be replaced, and returns its
// permissions, 0 where there is none yet.
func target(name string) (string, fs.FileMode, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name, 0, nil
	case err != nil:
		return name, 0, err
	case !info.Mode().IsRegular():
		return name, 0, &fs.PathError{Op: "replace", Path: name, Err: errors.New("it is no regular file")}
	}
	name, err = filepath.EvalSymlinks(name)
	return name, info.Mode().Perm(), err
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
