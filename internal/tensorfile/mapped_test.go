package tensorfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWindows(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, []byte("0123456789"), 0o666); err != nil {
		t.Fatal(err)
	}
	mapped, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.Close()
	for _, f := range []*File{mapped, Of(bytes.NewReader([]byte("0123456789")), 10)} {
		if got, err := f.Window(3, 4); err != nil || string(got) != "3456" {
			t.Errorf("got %q, %v", got, err)
		}
		for _, w := range [][2]int64{{-1, 1}, {3, 8}, {11, 0}, {1, -1}, {1, 1 << 62}} {
			if _, err := f.Window(w[0], w[1]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("window %v: %v", w, err)
			}
		}
	}
	closed, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if w, err := closed.Window(0, 1); !errors.Is(err, fs.ErrClosed) || w != nil {
		t.Errorf("a closed file has the window %p, %v", w, err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a folder was opened")
	}
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenIn(filepath.Join(dir, "in"), "../f"); err == nil {
		t.Error("a path left the folder")
	}
}
