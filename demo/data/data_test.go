package data

import "testing"

func TestDigitsAreSplitInOrder(t *testing.T) {
	train, test, err := Digits()
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 1437 || test.Len() != 360 {
		t.Fatalf("%d to train on and %d to test with", train.Len(), test.Len())
	}
	for _, s := range []Set{train, test} {
		if len(s.Images) != s.Len()*Pixels {
			t.Fatalf("%d counts for %d digits", len(s.Images), s.Len())
		}
		for i, v := range s.Images {
			if v > 16 {
				t.Fatalf("count %d is %d", i, v)
			}
		}
		for i, v := range s.Labels {
			if v > 9 {
				t.Fatalf("label %d is %d", i, v)
			}
		}
	}
	// The first row of the file is a 0, and its first row of pixels is this.
	first := [8]uint8{0, 0, 5, 13, 9, 1, 0, 0}
	if train.Labels[0] != 0 || [8]uint8(train.Images[:8]) != first {
		t.Errorf("the first digit is a %d with %v", train.Labels[0], train.Images[:8])
	}
}

func TestBatchesWrapAround(t *testing.T) {
	train, _, err := Digits()
	if err != nil {
		t.Fatal(err)
	}
	images, labels := make([]float32, 128*Pixels), make([]int32, 128)
	train.Batch(11, images, labels) // rows 1408 to 1436, then from 0 on
	for i, row := range map[int]int{0: 1408, 28: 1436, 29: 0, 127: 98} {
		if labels[i] != int32(train.Labels[row]) || images[i*Pixels+20] != float32(train.Images[row*Pixels+20]) {
			t.Errorf("digit %d of the batch is not row %d", i, row)
		}
	}
}
