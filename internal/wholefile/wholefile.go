// Package wholefile writes files of which readers see the old or the new contents, never a part.
package wholefile

import (
	"os"
	"path/filepath"
)

// Write writes a file, and makes its folder.
func Write(path string, data []byte) error {
	return Make(path, func(temporary string) error { return os.WriteFile(temporary, data, 0o600) })
}

// Make has write write a file under a temporary name in the folder of path, which it makes, and renames it. Unlike [Replace] it
// does not wait for the disk: caches can lose a file when the power fails.
func Make(path string, write func(temporary string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	if err := f.Close(); err != nil {
		return err
	}
	if err := write(f.Name()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
