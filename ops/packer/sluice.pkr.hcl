# SPDX-License-Identifier: Apache-2.0
# A sketch: an image of Debian in which sluice is installed, and starts with each machine that is made of it. Another
# builder takes the place of qemu; the provisioner stays as it is.
#   packer init . && packer validate -var-file=my.pkrvars.hcl . && packer build -var-file=my.pkrvars.hcl .
packer {
  required_version = ">= 1.9"
  required_plugins {
    qemu = {
      source  = "github.com/hashicorp/qemu"
      version = "= 1.1.0"
    }
  }
}

variable "mirror" {
  type        = string
  description = "URL of a mirror of releases; its folders are the versions"
}

variable "sluice_version" {
  type        = string
  description = "The release to install"
}

variable "release_key" {
  type        = string
  description = "The public key of the releases: the line that begins with RW"
}

variable "install_sha256" {
  type        = string
  description = "Checksum of install.sh in the release's SHA256SUMS"
}

variable "image" {
  type        = string
  description = "URL of a cloud image of Debian 12 or newer"
}

variable "image_checksum" {
  type        = string
  description = "Its checksum, as sha512:…"
}

variable "ssh_key" {
  type        = string
  description = "The private key for user debian, whose public half the seed of cloud-init has"
}

source "qemu" "debian" {
  iso_url              = var.image
  iso_checksum         = var.image_checksum
  disk_image           = true
  format               = "qcow2"
  headless             = true
  ssh_username         = "debian"
  ssh_private_key_file = var.ssh_key
  cd_files             = ["seed/meta-data", "seed/user-data"]
  cd_label             = "cidata"
  shutdown_command     = "sudo poweroff"
}

build {
  sources = ["source.qemu.debian"]

  provisioner "shell" {
    execute_command = "sudo env {{ .Vars }} sh -eu '{{ .Path }}'"
    environment_vars = [
      "MIRROR=${var.mirror}",
      "VERSION=${var.sluice_version}",
      "RELEASE_KEY=${var.release_key}",
      "INSTALL_SHA256=${var.install_sha256}",
    ]
    # The builder's kernel is another than the image's machines will have, and an agent that runs here would leave its
    # identity and its spool in the image: neither checked nor started, but enabled.
    inline = [
      "apt-get -qq update && apt-get -qq install -y --no-install-recommends ca-certificates curl openssl",
      "curl -fsSL --retry 5 -o /run/install-sluice.sh \"$MIRROR/$VERSION/install.sh\"",
      "echo \"$INSTALL_SHA256  /run/install-sluice.sh\" | sha256sum -c -",
      "sh /run/install-sluice.sh --from \"$MIRROR\" --version \"$VERSION\" --key \"$RELEASE_KEY\" --no-check --no-start",
      "systemctl enable sluice-agent.service",
      "rm -rf /run/install-sluice.sh /var/lib/sluice/*",
    ]
  }
}
