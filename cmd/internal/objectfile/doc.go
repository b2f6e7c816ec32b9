// SPDX-License-Identifier: Apache-2.0

// Package objectfile reads files with one object, which users pass to commands. It is strict: an unknown or duplicate
// field is an error. Errors contain none of the values, because they may be secret.
//
//	di := &lsv1alpha1.DeployItem{}
//	err := objectfile.Read("item.yaml", os.Stdin, objectfile.DeployItem, di)
package objectfile
