# Makes the namespaces that it runs in look like a fresh machine, and then reads commands from standard input.
#   machine.sh REPOSITORY operator           for a service that is to be installed; /var/lib/sledge is a small disk
#   machine.sh REPOSITORY author PROGRAMS    with the programs of that folder installed
# Below the folders where a service is installed, what is written goes to memory and is gone in the end.
set -eu
repository=$1 user=$2

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
if [ "$user" = operator ]; then
    mkdir -p /var/lib/sledge /var/cache/sledge /run/sledge /usr/local/lib/sledge
    mount -t tmpfs -o size=8m none /var/lib/sledge
    # As systemd sets them for sledge.service.
    export RUNTIME_DIRECTORY=/run/sledge CACHE_DIRECTORY=/var/cache/sledge STATE_DIRECTORY=/var/lib/sledge
else
    ln -sf "$3/awsm" "$3/sledge" /usr/local/bin
    mkdir "$memory/cache"
    export CACHE_DIRECTORY="$memory/cache"
fi
export PATH="/usr/local/bin:$PATH" LC_ALL=C
ln -s "$repository" sledge
# The shell that runs the commands; what they read is empty. Without a terminal it gives no notices of background jobs.
exec 3<&0 </dev/null 2>&1
exec bash --noprofile --norc /dev/fd/3
