// SPDX-License-Identifier: Apache-2.0

// Package scaffold is `deployerkit init`: it writes the repository of a new deployer. The files are those of templates/,
// which are text templates between [[ and ]]. The directory common holds what every deployer has, the directories of the
// styles hold the deployer itself.
package scaffold
