# Makes the namespaces that it runs in look like a fresh machine, and then reads commands from standard input.
#   machine.sh REPOSITORY
# Below the folders where a service is installed, what is written goes to memory and is gone in the end. /var/lib/sledge is a small disk.
set -eu
repository=$1

ip link set lo up

# In memory: folders for what is written.
memory=$PWD/memory
mkdir "$memory"
mount -t tmpfs none "$memory"

# Whatever is written below the folder goes to memory.
cover() {
    local folder=$1 layer
    layer=$(mktemp -d -p "$memory")
    while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
    mkdir "$layer/upper" "$layer/work"
    mount -t overlay overlay -o "lowerdir=$folder,upperdir=$layer/upper,workdir=$layer/work" "$folder"
}
for folder in /etc /etc/systemd/system /usr/local/bin /usr/local/lib /usr/local/share/doc /run /var/lib /var/cache; do
    cover "$folder"
done
mkdir -p /var/lib/sledge /var/cache/sledge /run/sledge /usr/local/lib/sledge
mount -t tmpfs -o size=8m none /var/lib/sledge

# As systemd sets them for sledge.service.
export RUNTIME_DIRECTORY=/run/sledge CACHE_DIRECTORY=/var/cache/sledge STATE_DIRECTORY=/var/lib/sledge
export PATH="/usr/local/bin:$PATH" LC_ALL=C
ln -s "$repository" sledge
# The shell that runs the commands; what they read is empty. Without a terminal it gives no notices of background jobs.
exec 3<&0 </dev/null 2>&1
exec bash --noprofile --norc /dev/fd/3
