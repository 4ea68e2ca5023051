package mil

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/ir"
)

// Package is a model on disk: a directory that Core ML calls an .mlpackage.
type Package struct {
	Program Program
	// Metadata are strings for the writer's own use, by key.
	Metadata map[string]string
}

// Paths and identifiers of the parts of a package.
const (
	manifestFile  = "Manifest.json"
	dataFolder    = "Data"
	author        = "com.apple.CoreML"
	modelFile     = "model.mlmodel"
	weightsFolder = "weights"
	weightsFile   = "weight.bin"

	modelID   = "6B1F0B3E-52C6-4C0A-9C58-7E0C5D1A0001" // arbitrary, but the same in each package,
	weightsID = "6B1F0B3E-52C6-4C0A-9C58-7E0C5D1A0002" // so that equal models are equal files
)

type manifest struct {
	FileFormatVersion   string                  `json:"fileFormatVersion"`
	ItemInfoEntries     map[string]manifestItem `json:"itemInfoEntries"`
	RootModelIdentifier string                  `json:"rootModelIdentifier"`
}

type manifestItem struct {
	Author      string `json:"author"`
	Description string `json:"description"`
	Name        string `json:"name"`
	Path        string `json:"path"`
}

func keys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// maxModel is the maximum number of bytes of a protocol buffer.
const maxModel = math.MaxInt32

// Write writes the package to a new directory. It writes to a temporary directory first, so that
// the name never refers to an incomplete package. The program is validated first. Errors are
// [*Error]s, of kind ErrUnsupported for a model of 2 GiB or more without its weights, or those of
// the file system.
func (p *Package) Write(dir string) (err error) {
	if err := Validate(&p.Program); err != nil {
		return err
	}
	if err := p.hasWeights(); err != nil {
		return err
	}
	e := &encoder{newBlobs()}
	model := e.model(p)
	if len(model) > maxModel {
		return &Error{Err: ir.Errorf(ir.ErrUnsupported, "the model has %d bytes without its weights; the limit is 2 GiB", len(model))}
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "write package", Path: dir, Err: fs.ErrExist}
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(temporary)
		}
	}()
	if err := writeParts(temporary, model, e.blobs); err != nil {
		return err
	}
	return os.Rename(temporary, dir)
}

func writeParts(dir string, model []byte, weights *blobs) error {
	data := filepath.Join(dir, dataFolder, author)
	if err := os.MkdirAll(filepath.Join(data, weightsFolder), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	m := manifest{
		FileFormatVersion: "1.0.0", RootModelIdentifier: modelID,
		ItemInfoEntries: map[string]manifestItem{
			modelID:   {author, "CoreML Model Specification", modelFile, author + "/" + modelFile},
			weightsID: {author, "CoreML Model Weights", weightsFolder, author + "/" + weightsFolder},
		},
	}
	text, err := json.MarshalIndent(m, "", "    ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, manifestFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, modelFile), model, 0o644); err != nil {
		return err
	}
	w, err := os.Create(filepath.Join(data, weightsFolder, weightsFile))
	if err != nil {
		return err
	}
	return errors.Join(weights.write(w), w.Close())
}

// hasWeights returns an error for a package read by [Describe].
func (p *Package) hasWeights() error {
	for _, f := range p.Program.Functions {
		for _, op := range f.Ops {
			if op.Value != nil && op.Value.elsewhere {
				return &Error{f.Name, op.String(), fmt.Errorf("%w: the package was read without its weights; Write needs them", ErrPackage)}
			}
		}
	}
	return nil
}

// Read reads a package and validates it. Errors of the package are [*Error]s, of kind [ErrPackage]
// if its files are damaged or contradict each other.
func Read(dir string) (*Package, error) { return read(dir, false) }

// Describe is [Read] without the data of constants in the weight file; it only checks that they are
// there. The package cannot be written.
func Describe(dir string) (*Package, error) { return read(dir, true) }

func read(dir string, skip bool) (*Package, error) {
	model, err := readModel(dir)
	if err != nil {
		return nil, err
	}
	d := &decoder{weights: blobFile{skip: skip}}
	file, err := os.Open(filepath.Join(dir, dataFolder, author, weightsFolder, weightsFile))
	switch {
	case err == nil:
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		d.weights.file, d.weights.size = file, uint64(info.Size())
	case !errors.Is(err, fs.ErrNotExist): // a model without large constants has no weight file
		return nil, err
	}
	if err := d.model(model); err != nil {
		return nil, wrapped(err)
	}
	if err := d.fits(); err != nil {
		return nil, wrapped(err)
	}
	if err := Validate(&d.program); err != nil {
		return nil, err
	}
	return &Package{Program: d.program, Metadata: d.meta}, nil
}

// wrapped converts an error to an [*Error].
func wrapped(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Err: err}
}

// readModel reads the model named by the manifest.
func readModel(dir string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, &Error{Err: fmt.Errorf("%w: %s: %w", ErrPackage, manifestFile, err)}
	}
	root, ok := m.ItemInfoEntries[m.RootModelIdentifier]
	if !ok || m.FileFormatVersion != "1.0.0" || !filepath.IsLocal(root.Path) {
		return nil, &Error{Err: fmt.Errorf("%w: %s of version %q names no model", ErrPackage, manifestFile, m.FileFormatVersion)}
	}
	return os.ReadFile(filepath.Join(dir, dataFolder, root.Path))
}
