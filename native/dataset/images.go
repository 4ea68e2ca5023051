package dataset

import (
	"image"
	"image/color"
	_ "image/gif" // formats of image.Decode
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"iter"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Images are the files of a folder with a folder for each class, as torchvision's ImageFolder takes
// it. They are decoded when a batch has them.
type Images struct {
	Classes []string // the names of the folders, sorted
	Files   []string // sorted
	Labels  []int32  // the class of each file

	files fs.FS
}

// maxPixels is the greatest number of pixels of an image: larger ones are refused before they are
// decoded.
const maxPixels = 1 << 26

// imageExtensions are those of the formats of image.Decode.
var imageExtensions = []string{".png", ".jpg", ".jpeg", ".gif"}

// OpenImages lists the files of a folder: CLASS/NAME with the extension .png, .jpg, .jpeg or .gif, in either case, also in
// folders below that of the class. Names that begin with a dot are left out. A class may be a link to a folder, and a file one to a
// file. The error is of kind [ErrDamaged] if there are no files, or none of a class, and for a link to a folder within a class.
func OpenImages(folder fs.FS) (*Images, error) {
	if folder == nil {
		return nil, ir.Attrf("folder is nil: it must be a file system")
	}
	m := &Images{files: folder}
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, err
	}
	for _, class := range entries {
		if isHidden(class) || !class.IsDir() && !isLinkedFolder(folder, class.Name(), class) {
			continue
		}
		before := len(m.Files)
		if err := m.addClass(class.Name()); err != nil {
			return nil, err
		}
		if len(m.Files) == before {
			return nil, damagedf("the folder of class %q has no images: they must have the extension .png, .jpg or .gif", class.Name())
		}
	}
	if len(m.Files) == 0 {
		return nil, damagedf("the folder has no images: they must be CLASS/NAME with the extension .png, .jpg or .gif")
	}
	return m, nil
}

// addClass adds a class with the files in its folder.
func (m *Images) addClass(name string) error {
	label := int32(len(m.Classes))
	m.Classes = append(m.Classes, name)
	return fs.WalkDir(m.files, name, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case isHidden(d) && d.IsDir():
			return fs.SkipDir
		case file != name && !isHidden(d) && isLinkedFolder(m.files, file, d):
			return damagedf("%s is a link to a folder: only that of a class may be one, since links could lead back to it", file)
		case !isHidden(d) && !d.IsDir() && slices.Contains(imageExtensions, strings.ToLower(path.Ext(file))):
			m.Files, m.Labels = append(m.Files, file), append(m.Labels, label)
		}
		return nil
	})
}

// isLinkedFolder reports whether a file is a link to a folder.
func isLinkedFolder(files fs.FS, name string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := fs.Stat(files, name)
	return err == nil && info.IsDir()
}

func isHidden(d fs.DirEntry) bool { return strings.HasPrefix(d.Name(), ".") }

// Read decodes image i, scales it to height × width by the mean of the pixels under each, and writes
// red, green and blue from 0 to 1 to to, which has height·width·3 elements; opacity is dropped, as by
// torchvision. The error is of kind [ir.ErrIndex] for an unknown image, [ir.ErrShape] for another
// length of to, and [ErrDamaged] for a file that is no image or has more than 2²⁶ pixels.
func (m *Images) Read(i, height, width int, to []float32) error {
	if m == nil || m.files == nil {
		return ir.Attrf("the images have no folder: they must be from OpenImages")
	}
	if i < 0 || i >= len(m.Files) {
		return ir.Errorf(ir.ErrIndex, "image %d: it must be in [0, %d)", i, len(m.Files))
	}
	if height < 1 || width < 1 || height > len(to)/width || len(to) != 3*height*width {
		return ir.Shapef("%d elements for an image of %d × %d: there must be %d", len(to), height, width, 3*height*width)
	}
	f, err := m.files.Open(m.Files[i])
	if err != nil {
		return err
	}
	defer f.Close()
	size, _, err := image.DecodeConfig(f)
	if err != nil {
		return damagedf("%s: %v", m.Files[i], err)
	}
	if size.Width < 1 || size.Height < 1 || size.Width > maxPixels/size.Height {
		return damagedf("%s has %d × %d pixels: there must be from 1 to %d", m.Files[i], size.Width, size.Height, maxPixels)
	}
	again, err := m.files.Open(m.Files[i])
	if err != nil {
		return err
	}
	defer again.Close()
	picture, _, err := image.Decode(again)
	if err != nil {
		return damagedf("%s: %v", m.Files[i], err)
	}
	scale(picture, height, width, to)
	return nil
}

// scale writes the means of the pixels of a picture under each pixel of the result. Where the result
// is larger than the picture, that is the nearest pixel.
func scale(p image.Image, height, width int, to []float32) {
	b := p.Bounds()
	for y := range height {
		top, bottom := b.Min.Y+y*b.Dy()/height, b.Min.Y+(y+1)*b.Dy()/height
		for x := range width {
			left, right := b.Min.X+x*b.Dx()/width, b.Min.X+(x+1)*b.Dx()/width
			var sum [3]float64
			n := 0.
			for v := top; v < max(bottom, top+1); v++ {
				for u := left; u < max(right, left+1); u++ {
					c := withoutOpacity(p.At(u, v))
					sum[0], sum[1], sum[2], n = sum[0]+float64(c.R), sum[1]+float64(c.G), sum[2]+float64(c.B), n+1
				}
			}
			for c := range sum {
				to[3*(y*width+x)+c] = float32(sum[c] / n / 0xffff)
			}
		}
	}
}

// withoutOpacity returns a color by its components, which color.NRGBA64Model rounds if they have 8 bits.
func withoutOpacity(c color.Color) color.NRGBA64 {
	if c, ok := c.(color.NRGBA); ok {
		return color.NRGBA64{R: 0x101 * uint16(c.R), G: 0x101 * uint16(c.G), B: 0x101 * uint16(c.B)}
	}
	return color.NRGBA64Model.Convert(c).(color.NRGBA64)
}

// Batches returns batches for rlx.Loop.Data: "x", f32[size, height, width, 3] with values from 0 to 1,
// and "labels", i32[size], in an order that depends on the seed and the epoch. Images that fill no
// batch are left out. A batch shares memory with the next one. An epoch yields the errors of
// [Images.Read], and one of kind [ir.ErrAttr] for a size below 1 or above the number of images, and for a height or width below 1
// or more than 2²⁶ pixels.
func (m *Images) Batches(size, height, width int, seed uint64) func(epoch int) iter.Seq2[map[string]native.Tensor, error] {
	return func(epoch int) iter.Seq2[map[string]native.Tensor, error] {
		return func(yield func(map[string]native.Tensor, error) bool) {
			if m == nil || height < 1 || width < 1 || height > maxPixels/width {
				yield(nil, ir.Attrf("images of %d × %d pixels, of a folder: %t: there must be from 1 to %d pixels, and the images from OpenImages", height, width, m != nil, maxPixels))
				return
			}
			if size < 1 || size > len(m.Files) {
				yield(nil, ir.Attrf("size is %d: it must be from 1 to the number of images, %d", size, len(m.Files)))
				return
			}
			n := 3 * height * width
			x, labels := make([]float32, size*n), make([]int32, size)
			batch := map[string]native.Tensor{"x": native.Float32s(x, size, height, width, 3), "labels": native.Int32s(labels)}
			order := rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(len(m.Files))
			for rows := range slices.Chunk(order[:len(order)/size*size], size) {
				for i, row := range rows {
					if err := m.Read(row, height, width, x[i*n:(i+1)*n]); err != nil {
						yield(nil, err)
						return
					}
					labels[i] = m.Labels[row]
				}
				if !yield(batch, nil) {
					return
				}
			}
		}
	}
}
