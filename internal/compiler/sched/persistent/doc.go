// Package persistent lowers a whole loop to one kernel.
//
// Input: a [fusion.Loop] whose rows are independent, such as a recurrent layer. Output: a kernel
// that keeps the carries of its rows in workgroup memory over all steps, or false where the loop
// is not of that kind. There is one file.
package persistent
